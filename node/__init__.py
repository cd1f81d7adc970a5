"""Nodes put together: the only place where adapters meet cores."""
