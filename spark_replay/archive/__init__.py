"""An archive of metadata logs: what the nodes remove in time, kept with proof that it is what they wrote."""
