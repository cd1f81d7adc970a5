"""A machine that has just started: its monotonic clock is near 0, so that 0 is not long ago, nor is an hour before now.

Linux gives processes such a clock in a time namespace. Tests of one process have one always (tests/conftest.py), but
uvloop and child processes read the kernel's.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.tree import ROOT

TIMEOUT_S = 300
TESTS = (
    "tests/integration/test_combined.py::test_one_node_is_a_cluster_and_comes_back_with_what_it_had",
    "tests/unit/network/test_connection_quota.py",
    "tests/unit/storage/test_recovery_point.py",
)


@pytest.fixture
def just_started() -> list[str]:
    """What to put before a command so that its clock begins at 0; skips where Linux does not let us."""
    # The offset of a namespace counts from the machine's own clock, and this process may be in a namespace already.
    offsets = Path("/proc/self/timens_offsets")
    own = re.search(r"monotonic +(-?\d+)", offsets.read_text()) if offsets.exists() else None
    offset = (int(own[1]) if own else 0) - int(time.clock_gettime(time.CLOCK_MONOTONIC))
    command = ["unshare", "--time", f"--monotonic={offset}", "--fork"]
    try:
        done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no time namespace without unshare: {error}")
    if done.returncode != 0:
        pytest.skip(f"a time namespace cannot be made here: {done.stderr.strip()}")
    return command


def test_nodes_and_connections_do_their_work(just_started: list[str], tmp_path: Path) -> None:
    """Tests run again in a process that has this clock."""
    shown = [sys.executable, "-c", "import time; print(time.monotonic())"]
    seen = subprocess.run([*just_started, *shown], capture_output=True, text=True, check=True)
    assert float(seen.stdout) < 60
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*just_started, *pytest_command, *TESTS, f"--basetemp={tmp_path / 'tests'}"],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
