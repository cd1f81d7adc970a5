"""The command line, and the only place that wires adapters to cores."""
