"""What a running node reports: metrics for Prometheus, and its health.

Read `health.py` first, then `gather.py` (the metrics) and `http_server.py`.
"""
