"""Episodes of the current policy: many in flight for few slots, paused, carried on, accounted for.

The loop asks for groups of samples (`rollouts.Rollouts`), and gives the policy its next weights
(`weights.PolicyWeights`).
"""
