"""The partition logs on disk: `disk_log.py` (one log), `loading.py` (opening it), `log_manager.py` (all of them)."""
