"""Creating and deleting topics, adding partitions, and placing their replicas (rule C13).

Read `create_topics.py` first.
"""
