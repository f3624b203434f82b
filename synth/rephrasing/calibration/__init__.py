"""The judge of rewrites on trial: changed parts, controls, and its error rates."""
