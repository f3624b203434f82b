"""The wire format: requests as bytes, in the form that an endpoint takes, and what it answers."""
