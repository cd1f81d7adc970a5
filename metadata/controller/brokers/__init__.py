"""Registration, heartbeats, sessions and fencing of brokers; blocks of producer ids. Read `heartbeat.py` first."""
