"""Transactions: which are open, who may go on with them, and how their end reaches the partitions."""
