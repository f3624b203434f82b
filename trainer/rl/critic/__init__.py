"""The policy as critic: answers ranked pair by pair, and how far its verdicts agree with code's."""
