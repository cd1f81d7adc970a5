"""The tables of an audit: each module makes the table of its own name, from the records or from other tables.

A module has the schema with a comment for each column, the builder, and at its end `TABLE`. Read `quorum_epochs.py`
first; docs/contributing.md says how to add a table. `building` holds what they share.
"""
