"""What the active controller decides: records, never changes of state; only the replay of the records changes state.

Read `controller.py` first, then `handlers.py` (which request goes where), `context.py` and `log_writer.py`.
"""
