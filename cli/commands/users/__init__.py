"""`kquorum users`: list, add, alter and remove SCRAM credentials of users."""
