"""Who may do what: decisions over the ACLs of an image, and the rule of each API.

Read `gate.py` first (it applies the rule of an API to a request), then `authorizer.py` (which ACLs decide).
"""
