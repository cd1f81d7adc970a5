"""The fetching side: records of the leader (`fetching.py`), or a snapshot if the leader no longer has them."""
