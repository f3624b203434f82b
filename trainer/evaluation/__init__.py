"""What a model can do: it plays held-out tasks in the episode environment.

The only room of the trainer that imports `synth`.
"""
