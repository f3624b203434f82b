"""Whether a tool's texts instruct the model that reads them: folding, opening, rules, classifier.

The rule to know: no list and no small model finds every attack. What is imported as text runs
nothing, and live servers run in sandboxes, whatever their descriptions say.
"""
