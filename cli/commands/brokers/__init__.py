"""`kquorum brokers`: the brokers and how far they follow."""
