"""Kafka-protocol frames over TCP on asyncio: a server and a pipelined client connection.

Knows no API's meaning.
"""
