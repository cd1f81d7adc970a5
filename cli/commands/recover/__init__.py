"""`kquorum recover`: a quorum whose majority is gone for ever goes on from the best folder that is left."""
