"""Log directories of real brokers, of which each test takes a copy."""

import shutil
from pathlib import Path

import pytest

REAL_FOLDERS = (
    "gzip",
    "kafka-4.3-transactions-1",
    "kafka-4.3-transactions-2",
    "kafka-4.3-transactions-3",
    "many-snapshots",
    "oldest-0.11",
    "retained-and-cleaned",
    "small-4.0",
    "snappy-1",
    "snappy-2",
    "snappy-3",
    "three-brokers-1",
    "three-brokers-2",
    "three-brokers-3",
    "two-segments-4.0",
    "unclean-1",
    "unclean-2",
    "unclean-3",
)


def copied(real_data: Path, name: str, target: Path) -> Path:
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name} in {real_data}")
    shutil.copytree(real_data / name, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target
