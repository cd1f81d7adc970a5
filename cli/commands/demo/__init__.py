"""`kquorum demo`: a quorum runs, is killed, is read and is audited."""
