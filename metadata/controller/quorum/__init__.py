"""The first records of a new active controller, feature levels, and DescribeCluster. Read `activation.py` first."""
