"""`kquorum watch`: changes of the metadata, live (gRPC)."""
