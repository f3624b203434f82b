"""What `synth sandbox bench` measures and which faults `synth sandbox faults` injects."""
