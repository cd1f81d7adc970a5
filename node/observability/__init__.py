"""What a running node reports: metrics for Prometheus, and its health."""
