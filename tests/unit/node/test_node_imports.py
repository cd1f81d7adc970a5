"""What a node loads before it serves, which is most of its start."""

import subprocess
import sys

_CODE = """
import sys
import kquorum.node.cluster_node
print(*sorted({each.split(".")[2] for each in sys.modules if each.startswith("kquorum.broker.")}))
"""
# Where nearly all of a broker's modules are.
_OF_BROKERS = {"adapters", "apis", "fetch", "groups", "log", "replica", "transactions"}


def test_a_node_without_a_broker_loads_none() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "state_machine" in loaded, "that of a node without a controller"
    assert loaded & _OF_BROKERS == set()
