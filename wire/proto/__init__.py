"""gRPC and protobuf: the .proto files and the modules generated from them (see generate.py)."""
