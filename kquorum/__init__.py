"""kquorum: a self-managed KRaft metadata quorum. Its parts are the folders beside this one, linked in here.

Only this name stands among the installed packages, so that a user's own `cli` or `network` is never in the way. The
folders stay at the top of the project; the links make them `kquorum.raft` and so on for Python, for type checkers, for
editors and for the build alike (docs/packaging.md).
"""

import os

# Where `make compile` has built modules, and in a wheel that has them, `kquorum.compiled` has Python find them before
# other modules are imported. Elsewhere nothing is imported here, for the command has not taken over Ctrl-C yet.
_asked = os.environ.get("KQUORUM_COMPILED", "")
_here = os.path.dirname(__file__)  # noqa: PTH120
_built = (f"{_here}/_compiled", f"{_here}/../build/compiled")
if _asked != "0" and (_asked or any(map(os.path.isdir, _built))):
    from kquorum import compiled as compiled
