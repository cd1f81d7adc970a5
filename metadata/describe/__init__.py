"""Requests that brokers and controllers answer from their own image. Read `describe_request.py` first."""
