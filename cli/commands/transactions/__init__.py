"""`kquorum transactions`: list, describe and abort transactions."""
