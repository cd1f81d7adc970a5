"""`kquorum format`: prepare the data folders of nodes."""
