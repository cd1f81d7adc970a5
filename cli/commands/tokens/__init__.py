"""`kquorum tokens`: list, create, renew and expire delegation tokens."""
