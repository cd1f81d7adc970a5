"""The version of kquorum, and the commit that it was made from."""

import os
import subprocess
from pathlib import Path
from typing import Final

BAKED_IN: Final = "_commit.txt"
"""In the package's folder: the build of a wheel writes the commit here (`setup.py`)."""
_GIT_TIMEOUT_S: Final = 5
_SHORT: Final = 12


def version_text() -> str:
    """`kquorum 0.1.0 (commit 0123456789ab)`, with what is known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        name = f"kquorum {version('kquorum')}"
    except PackageNotFoundError:
        name = "kquorum, not installed as a package"
    commit = commit_text()
    return name if commit is None else f"{name} (commit {commit})"


def commit_text(package: Path | None = None) -> str | None:
    """Of a wheel the commit of its build; of a checkout the present one, with `, modified` if tracked files differ from
    it. None where neither is known."""
    import kquorum

    folder = Path(kquorum.__file__).parent if package is None else package
    try:
        return (folder / BAKED_IN).read_text().strip() or None
    except OSError:
        return _of_checkout(folder.parent)


def _of_checkout(root: Path) -> str | None:
    if not (root / ".git").exists():
        return None
    commit = _git(root, "rev-parse", f"--short={_SHORT}", "HEAD")
    if not commit:
        return None
    return f"{commit}, modified" if _git(root, "status", "--porcelain", "--untracked-files=no") else commit


def _git(root: Path, *arguments: str) -> str:
    """What git says; nothing where it cannot."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],  # noqa: S607 - any git will do
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
