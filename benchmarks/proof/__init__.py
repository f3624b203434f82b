"""Does the data teach? A small model from nothing, before and after fine-tuning, on unseen tasks.

    python -m benchmarks.proof [--seeds 1] [--budget-minutes 90] [--out data/proof] [--short]

For each seed: a dataset is made (configs/proof/data.toml); a model is pretrained on prose and on
made-up texts that say things twice (`benchmarks/drills.py`: to copy is learnt there), then on
made-up conversations (`benchmarks/drill_conversations.py`), fine-tuned on what was accepted, and
scored by playing tasks of four kinds that it has not seen. The baselines play the same tasks. What
is there already is kept: a proof that was stopped goes on, and further seeds are added to those
that are done.
"""
