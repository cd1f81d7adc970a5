"""The replay of partitions: their records as events, and the events as rows of `partition_history`."""
