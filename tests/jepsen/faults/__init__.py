"""The ways to hurt a cluster."""
