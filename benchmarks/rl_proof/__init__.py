"""What reinforcement learning adds to the model of the proof, and what its parts are worth.

`python -m benchmarks.proof` comes first: this goes on in the folder of one of its seeds. The
fine-tuned model plays the training tasks and learns from what code finds of its episodes, for the
minutes of the budget, scoring included; then it plays the tasks that the fine-tuned model was
scored on. `rl.md` there compares the two, task for task. With `--arms` each part of the algorithm
is left out, or added, in a run of its own of `--arm-minutes`, and `rl_arms.md` compares those.
Started again, it goes on.
"""
