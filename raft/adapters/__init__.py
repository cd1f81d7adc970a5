"""What joins the consensus core to asyncio, files and the Kafka protocol."""
