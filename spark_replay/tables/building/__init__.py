"""What the tables are built with: shared columns, queries and the records of the state."""
