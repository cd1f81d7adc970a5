"""The leading side: the turn of a leader, what a majority has confirmed, fetches, and leadership transfer.

Read `turn.py` first, then `majority.py` and `fetch_handler.py`.
"""
