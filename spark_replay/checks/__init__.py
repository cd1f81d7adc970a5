"""Rules that a log must keep, each breach with the offsets that prove it."""
