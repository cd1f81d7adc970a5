"""What a node imports before it serves."""

import subprocess
import sys

CODE = """
import sys
from kquorum.node.controller import ControllerRole
from tests.support.controller_world import World
ControllerRole.attach(None)
before = set(sys.modules)
made = World().lead().add_brokers(1).create({"name": "large", "num_partitions": 2000})
assert not int(made["large"].error_code), made
print(sorted(name for name in set(sys.modules) - before if name.startswith("numpy")))
"""


def test_what_is_first_done_by_columns_waits_for_no_import() -> None:
    """NumPy imports its masked arrays when `unique` is first called; the loop stood still for forty milliseconds."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", (done.stdout, done.stderr)
