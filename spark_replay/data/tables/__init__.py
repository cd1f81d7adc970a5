"""One module for each table of the partitions' logs: its schema, its builder, and its `TABLE`.

`spark_replay.data.registry` finds them.
"""
