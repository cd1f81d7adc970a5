"""What a new active controller writes first, feature levels, and DescribeCluster. Read `activation.py` first."""
