"""Questions to tables, written once and answered by DuckDB in this process or by Spark on a cluster."""
