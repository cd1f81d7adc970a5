"""Answers to clients, each a pure function of the request and one image."""
