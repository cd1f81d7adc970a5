"""Schedules written by hand for what chance reaches too rarely, under the same checkers."""
