"""What a model can do: it plays held-out tasks in the episode environment.

With `rl` the only room of the trainer that imports `synth`.
"""
