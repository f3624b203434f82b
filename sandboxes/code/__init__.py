"""Code as an environment: repositories, injected bugs, packages, graded test suites, problems."""
