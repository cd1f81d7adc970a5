"""What a running node tells those who watch it: figures for Prometheus, and whether it is well."""
