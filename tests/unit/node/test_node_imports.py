"""What a node loads before it serves, which is most of its start."""

import subprocess
import sys

_CODE = """
import sys
import kquorum.node.cluster_node
print(*sorted(each for each in sys.modules if each.startswith("kquorum.broker.")))
"""
# The broker's state machine is that of a node without a controller; health knows the states of a broker.
_OF_ALL_NODES = {
    "kquorum.broker.image_feed",
    "kquorum.broker.lifecycle_states",
    "kquorum.broker.metadata_cache",
    "kquorum.broker.metadata_cache.cache",
    "kquorum.broker.state_machine",
}


def test_a_node_without_a_broker_loads_none() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == _OF_ALL_NODES
