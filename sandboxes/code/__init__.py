"""Code as an environment: repositories, planted bugs, packages, graded test suites, problems."""
