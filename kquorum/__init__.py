"""kquorum: a self-managed KRaft metadata quorum. Its parts are the folders beside this one, linked in here.

Only this name stands among the installed packages, so that a user's own `cli` or `network` is never in the way. The
folders stay at the top of the project; the links make them `kquorum.raft` and so on for Python, for type checkers, for
editors and for the build alike (docs/packaging.md).
"""

# Before any other module: it decides whether those that were built by `make compile` are used.
from kquorum import compiled as compiled
