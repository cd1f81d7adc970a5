"""The main job from end to end, on this machine, in front of the user: what `make demo` runs."""
