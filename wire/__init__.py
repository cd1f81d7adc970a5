"""Bytes and values: Kafka's encodings, messages, metadata records and record batches. Pure, without state or I/O.

Read `record_batch.py` first (batches), then `message_codec.py` (messages) and `schema.py` (metadata records).
"""
