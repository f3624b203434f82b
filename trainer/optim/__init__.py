"""Optimisers and what goes with them: the loss, Muon, QK-Clip, schedules, expert balance."""
