"""Short runs of the real thing: most workloads side by side, with faults of the links, the processes and the disks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jepsen.checkers.verdicts import EXIT_STATUS, Verdict

pytestmark = [pytest.mark.jepsen, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
SMALL = ("--brokers", "2", "--rate", "10", "--concurrency", "4", "--no-pages")
RUNS = {
    "links and power, without root": (
        *("--net", "proxy", "--workload", "topics-set,register,config-set,log-order,leader-lease"),
        *("--nemesis", "isolate-leader,power-cut", "--time", "16", "--quiet", "2", "--fault", "5"),
    ),
    "processes, while voters change": (
        *(
            "--workload",
            "membership,log-order",
            "--nemesis",
            "kill-one,pause-leader",
            "--time",
            "26",
            "--quiet",
            "3",
        ),
    ),
}
# A machine that is busy with other things may be too slow to prove anything, once or twice.
ATTEMPTS = 3
# Also the first time, when Porcupine has to be fetched and built.
TIMEOUT_S = 400


@pytest.mark.parametrize("name", list(RUNS))
def test_a_short_run_is_valid(name: str, tmp_path: Path) -> None:
    said = ""
    for attempt in range(1, ATTEMPTS + 1):
        status, said = run(*RUNS[name], "--seed", str(attempt), "--store", str(tmp_path))
        assert status != EXIT_STATUS[Verdict.INVALID], said
        if status == EXIT_STATUS[Verdict.VALID]:
            return
    pytest.fail(f"{ATTEMPTS} runs gave no verdict:\n{said}")


def run(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.jepsen", *SMALL, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "110"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    return done.returncode, said
