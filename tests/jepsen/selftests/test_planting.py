"""A planted bug is in the node's process, and stays there: the hunt for one that is not would prove nothing."""

import os
import subprocess
import sys

import pytest

from tests.jepsen.mutants.environment import planted_environment

WHERE_READS_ARE_CONFIRMED = (
    "import gc, kquorum.raft.leader.turn as l; gc.collect(); print(l.confirm_reads.__module__)"
)


@pytest.mark.parametrize(("name", "module"), [("read_without_asking", "tests."), (None, "kquorum.raft.")])
def test_a_planted_bug_survives_its_planting(name: str | None, module: str) -> None:
    """This one is of the kind that is taken back when no process holds it any more."""
    environment = planted_environment(name or "")
    done = subprocess.run(
        [sys.executable, "-P", "-c", WHERE_READS_ARE_CONFIRMED],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith(module), done.stdout + done.stderr
