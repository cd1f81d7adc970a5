"""Decisions over the ACLs of an image, and what each API asks of them. Read `gate.py` first, then `table.py`."""
