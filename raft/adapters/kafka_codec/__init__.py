"""The quorum's messages as Kafka's requests and responses, one file per API."""
