"""`kquorum acls`: list, add and remove access control entries."""
