"""Optimisers and what goes with them: Muon, QK-Clip, schedules, expert balance."""
