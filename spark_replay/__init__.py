"""Replay of a metadata log, of this project or of Apache Kafka, into tables, on Spark."""
