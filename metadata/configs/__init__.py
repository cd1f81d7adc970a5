"""Every config key: its name, type, default, valid values and purpose, by kind of resource.

Read `definition.py` first (what an entry says), then `table.py` (how keys are looked up).
"""
