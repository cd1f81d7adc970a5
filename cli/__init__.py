"""The command line: commands, their checks and their output."""
