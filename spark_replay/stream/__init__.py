"""An audit of a log as it grows: Spark's structured streaming, from offset to offset, into the tables of `audit`."""
