"""A Kafka cluster for tests: real brokers and controllers on free loopback ports, in a folder that goes with them."""
