"""Creating and deleting topics, adding partitions, and where their replicas go. Read `create_topics.py` first."""
