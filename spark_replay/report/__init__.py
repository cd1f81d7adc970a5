"""One page of HTML about a metadata log: bounded facts gathered by Spark, then rendering without it."""
