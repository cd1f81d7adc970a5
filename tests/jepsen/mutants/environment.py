"""What makes a node's process plant a bug into itself."""

from pathlib import Path

_SITE = Path(__file__).resolve().parent / "site"
_ROOT = Path(__file__).resolve().parents[3]


def planted_environment(name: str) -> dict[str, str]:
    return {"JEPSEN_MUTANT": name, "PYTHONPATH": f"{_SITE}:{_ROOT}"}
