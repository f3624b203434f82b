"""Installing packages of servers, from the indexes of the user's own settings and nowhere else."""
