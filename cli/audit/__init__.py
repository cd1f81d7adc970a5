"""The commands `kquorum audit ...`: what they share, and the work of each."""
