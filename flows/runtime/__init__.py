"""What every flow runs on: the Prefect server, the open run, a stage as Prefect tasks, artifacts.

Here belongs whatever knows both Prefect and `synth.engine`. No flow is defined here.
"""
