"""The current image at a broker, and the Metadata responses that are made from it.

Read `answers.py` first (the rules, partition by partition), then `responses.py` (the same as bytes).
"""
