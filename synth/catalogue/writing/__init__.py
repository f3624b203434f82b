"""Tools and policy for a domain, written by a language model into the domain's file."""
