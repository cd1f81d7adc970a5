"""`kquorum doctor`: check a whole cluster and its folders."""
