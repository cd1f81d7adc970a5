"""Changes of configs and client quotas. Read `alter_configs.py` first; the keys are defined beside the controller."""
