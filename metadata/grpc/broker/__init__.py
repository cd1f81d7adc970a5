"""`Broker`: members of the cluster that speak gRPC instead of Kafka's protocol. Read `service.py` first."""
