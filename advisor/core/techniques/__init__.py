"""Optimization techniques: a catalogue, and which of them would help a plan."""
