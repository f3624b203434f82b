"""Tools that nothing runs: the offline model writes their domain and plays calls in it."""

from offline_llm.simulator.call import simulate_call
from offline_llm.simulator.sketch import write_environment

SIMULATOR_JOBS = {"simulate_call": simulate_call, "world_sketch": write_environment}
