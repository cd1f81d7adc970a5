"""The APIs of a broker's listener: `registry.py` names each once, and a file beside it holds each handler.

Read `registry.py` first, then `api.py` (the ways in which an API is answered).
"""
