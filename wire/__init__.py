"""Bytes and values: Kafka's encodings, messages, metadata records and record batches. Pure, without state or I/O."""
