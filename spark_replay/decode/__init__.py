"""What the audit reads without Spark: finding log files, decoding them into rows, and cutting them into pieces."""
