"""What a tool is: specs, domains, operational semantics and their interpreter. Starts nothing."""
