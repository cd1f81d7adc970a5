"""Questions to an audit, as functions of its tables."""
