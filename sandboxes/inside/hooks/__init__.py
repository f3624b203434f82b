"""What Python and Node run first in a sandbox whose clock stands still."""
