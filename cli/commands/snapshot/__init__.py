"""`kquorum snapshot`: list, check, compare and take snapshots."""
