"""`kquorum init`: write a commented config of a new cluster."""
