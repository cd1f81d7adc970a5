"""Who is at the other end: TLS, SASL and the names they give to peers."""
