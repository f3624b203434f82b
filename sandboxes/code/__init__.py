"""Code as a world: repositories, planted bugs, packages, graded test suites, problems."""
