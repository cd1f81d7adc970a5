"""Frames in, frames out: each module makes one table from the `records` table."""
