"""Complex instruction following: writing requests with constraints that code checks, and the check
for answers that claim to comply, or comply by the letter alone."""
