"""`kquorum up`: run all nodes of the config on this machine."""
