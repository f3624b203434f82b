"""Marks in ShareGPT's turns for what a turn cannot say, as LLaMA-Factory writes and reads them."""

BETWEEN_RESULTS = "\n</tool_response>\n<tool_response>\n"
"""Between the results of parallel calls, which are one turn."""

CALL_MARKS = ("<tool_call>", "</tool_call>")
"""Around calls beside which something is said."""
