"""`kquorum audit`: replay a metadata log into tables that answer questions (Spark)."""
