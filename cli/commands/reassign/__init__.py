"""`kquorum reassign`: move replicas of partitions to other brokers."""
