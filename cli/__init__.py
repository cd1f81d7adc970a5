"""The command line: commands, their checks and their output.

- `entry.py`: the first module of a process, which handles Ctrl-C; `main.py` runs one command line; `child.py` is
  `kquorum` as a child process that dies with its parent, and `processes.py` starts nodes that way.
- `command_tree.py`: how a command is found by the name of its file, and what it says of itself.
- `commands/<name>.py` or `commands/<name>/`: one command whole, from its options (`command.py`) to its output.
- `clients/`: what several commands ask a cluster with: addresses, security, Kafka requests, gRPC calls.
- `options.py`, `output.py`, `failures.py`: shared options, tables and JSON, errors and exit statuses.
"""
