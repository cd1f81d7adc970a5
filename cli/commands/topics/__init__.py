"""`kquorum topics`: create, list, describe and delete topics."""
