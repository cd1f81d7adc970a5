"""`kquorum certs`: certificates to try TLS with."""
