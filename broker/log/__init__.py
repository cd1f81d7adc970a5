"""The log of a partition that stores messages: validation, producers, transactions, segments, retention, compaction.

The formats and rules are Apache Kafka's; docs/data-log.md says what this project does with them.
"""
