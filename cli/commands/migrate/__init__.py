"""`kquorum migrate`: the controllers of a running cluster go from Apache Kafka to kquorum, one by one, or back."""
