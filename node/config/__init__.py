"""The quorum config: one TOML file for all nodes, or a Kafka properties file for one."""
