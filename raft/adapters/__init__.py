"""What joins the consensus core to asyncio, files and the Kafka protocol.

Read `driver.py` first, then `file_log.py` (the metadata log on disk) and `transport.py` (requests to other replicas).
"""
