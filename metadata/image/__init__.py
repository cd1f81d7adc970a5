"""The metadata as immutable values: images, the deltas that advance them, and the records that recreate them."""
