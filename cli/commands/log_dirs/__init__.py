"""`kquorum log-dirs`: the log directories of brokers, and moves of replicas between them."""
