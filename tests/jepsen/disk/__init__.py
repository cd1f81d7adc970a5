"""Disks that lose, delay and refuse what is written."""
