"""The fetching side: records of the leader, and a snapshot where the records are gone."""
