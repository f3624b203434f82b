"""User goals with structure: what is done, to which rows or whether at all has to be found out."""
