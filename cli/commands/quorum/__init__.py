"""`kquorum quorum`: who leads and votes; change the voters."""
