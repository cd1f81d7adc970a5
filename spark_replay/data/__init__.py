"""The logs of a broker's partitions as tables: batches, transactions, groups' offsets; on Spark."""
