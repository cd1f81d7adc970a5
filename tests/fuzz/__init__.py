"""Mutated bytes for every decoder: only the documented error may come out, soon, and without much memory."""
