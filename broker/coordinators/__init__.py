"""What the coordinators of groups and of transactions share: the partition of a key, how its log is loaded, timers."""
