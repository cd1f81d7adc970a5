"""The project's own sources, as the tidiness tests see them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "wire",
    "network",
    "storage",
    "raft",
    "snapshots",
    "metadata",
    "broker",
    "spark_replay",
    "node",
    "testing",
    "cli",
)
CORES = ("wire", "raft", "snapshots", "metadata", "broker")
_NOT_OURS = {
    ".git",
    ".venv",
    ".venv-making",
    ".venv-lock",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    "build",
}


def is_generated(path: Path) -> bool:
    """Whether a protobuf compiler wrote the file."""
    return path.name.endswith(("_pb2.py", "_pb2_grpc.py", ".pyi"))


def python_files(*folders: str) -> Iterator[Path]:
    """Every Python source beneath the folders (all of the project without any), generated ones left out."""
    for folder in folders or (".",):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not _NOT_OURS.intersection(path.relative_to(ROOT).parts) and not is_generated(path):
                yield path


def core_files(*packages: str) -> Iterator[Path]:
    """The sources of the given packages outside `adapters` and `metadata/grpc`, which do input and output."""
    for path in python_files(*packages):
        parts = path.relative_to(ROOT).parts
        if "adapters" not in parts and parts[:2] != ("metadata", "grpc"):
            yield path


def module_name(path: Path) -> str:
    """The absolute module name of a source file: `raft/node.py` is `kquorum.raft.node`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("kquorum", *parts) if parts[0] in PACKAGES else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def checked_in_files() -> list[Path]:
    """Everything git tracks or would track, so that a new file is seen before it is added."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [name for name in listing.stdout.split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]
