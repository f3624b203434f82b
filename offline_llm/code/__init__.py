"""The offline agent that mends code: it reads a failing test and tries small edits."""
