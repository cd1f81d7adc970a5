"""The identity of peers: TLS, SASL and the principals that they yield."""
