"""Servers as people have them: the files of their clients, and packages that are installed from
the indexes of the user's own settings and from nowhere else."""
