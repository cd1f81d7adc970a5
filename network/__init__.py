"""Kafka-protocol frames over TCP on asyncio: a server and a pipelined client connection.

Knows no API's meaning. Read `server.py` first, then `serving.py` (from a frame to a handler) and `turns.py`.
"""
