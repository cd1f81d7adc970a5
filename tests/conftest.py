"""Fixtures shared by all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How fast this machine is, and what else it does, is no property of ours.
settings.register_profile("kquorum", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kquorum")

# gRPC, while in use, makes a third of the children of a fork crash that Spark starts Java with (its fork handlers run
# in them; measured: 146 of 400). No child of ours goes on with gRPC. It is read when gRPC is imported, so: here.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

PROJECT_ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def real_logs() -> Path:
    """A folder of metadata directories of real Kafka clusters, with `expected.json`; skips where there is none."""
    named = os.environ.get("KQUORUM_REAL_LOGS")
    folder = Path(named) if named else PROJECT_ROOT.parent / "shared" / "real-logs"
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no real logs in {folder}; name their folder in KQUORUM_REAL_LOGS")
    return folder.resolve()


@pytest.fixture(autouse=True)
def interrupts_are_pythons() -> None:
    """Spark takes SIGINT for itself and keeps it; asyncio minds a signal only while Python's own handler is there
    (measured: 12 of 40 interrupted commands then ended otherwise)."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark first: its one audit takes longer than anything else, and nothing should be left waiting for it."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
