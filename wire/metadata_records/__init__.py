"""The records of Kafka's metadata log, by area; facts from Kafka's metadata schemas (KIP-631 and later)."""
