"""`kquorum log`: read, check and compare metadata logs."""
