"""Examines a metadata log and its snapshots: what is damaged, what contradicts what, and what the state was.

Read `log_checker.py` first, then `findings.py`.
"""
