"""How every command asks a cluster: addresses, security, requests of Kafka's protocol, gRPC calls."""
