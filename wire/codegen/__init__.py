"""Turns a plan of a message's fields into the source of its encoder and decoder, and compiles it once."""
