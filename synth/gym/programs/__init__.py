"""Programs written for a problem, judged by hidden tests that no program and no reader sees."""
