"""The decisions of the active controller. A decision is a list of records; only their replay changes state.

Read `controller.py` first, then `metadata/controller_apis.py` (which request goes to which handler), `context.py`
(what a handler sees) and `log_writer.py` (how records get into the log).
"""
