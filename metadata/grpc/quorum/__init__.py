"""`Quorum`: states of replicas and nodes, leadership transfer, history of elections. Read `service.py` first."""
