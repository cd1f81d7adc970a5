"""The leading side: the turn of a leader, what a majority has confirmed, fetches and the hand-over."""
