"""The active controller: it decides on records; only their replay changes state."""
