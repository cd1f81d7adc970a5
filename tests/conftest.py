"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

PROJECT_ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def real_logs() -> Path:
    """A folder of metadata directories of real Kafka clusters, with `expected.json`; skips where there is none."""
    named = os.environ.get("KQUORUM_REAL_LOGS")
    folder = Path(named) if named else PROJECT_ROOT.parent / "shared" / "real-logs"
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no real logs in {folder}; name their folder in KQUORUM_REAL_LOGS")
    return folder.resolve()
