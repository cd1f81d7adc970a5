"""A typed class per Kafka message, for all its versions, one module per API; `make messages` writes them."""
