"""The questions of `kquorum audit`: one file computes the answer to one question."""
