"""Changes of ACLs, SCRAM credentials and delegation tokens. Read `acls.py` first."""
