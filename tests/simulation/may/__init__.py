"""Worlds in which an operator asks `kquorum may`, and does what is allowed: then nothing is lost, and all goes on."""
