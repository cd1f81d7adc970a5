"""The networks that nodes run in, and how their links are cut."""
