"""A dataset as pages on this machine: `synth browse`. It reads, and writes down people's labels.

Here belongs what a page needs and no other reader does: lists with facets, the guard at the door,
templates. How a conversation or a verdict is put together and shown belongs to `synth/publish`.
"""
