"""Kafka's request and response protocol: frames, headers, the APIs, and entities from plain values."""
