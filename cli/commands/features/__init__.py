"""`kquorum features`: the levels of features: show, upgrade, downgrade."""
