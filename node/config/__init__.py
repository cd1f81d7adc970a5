"""The quorum config: one TOML file for all nodes, or a Kafka properties file for one.

Read `model.py` first (the fields), then `load.py` (from a file to them) and `checks.py` (rules over several keys).
"""
