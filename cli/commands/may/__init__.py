"""`kquorum may`: whether nodes may be stopped, restarted, removed, formatted or upgraded now."""
