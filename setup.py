"""What pyproject.toml cannot say of the build: a wheel knows the commit that it was made from."""

import os
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithCommit(build_py):
    """The commit is that of KQUORUM_COMMIT, where the sources were copied out of their checkout, or the checkout's."""

    def run(self) -> None:
        super().run()
        commit = os.environ.get("KQUORUM_COMMIT") or _commit()
        if commit and not self.editable_mode:
            (Path(self.build_lib) / "kquorum" / "_commit.txt").write_text(commit + "\n")


def _commit() -> str:
    if not Path(__file__).with_name(".git").exists():
        return ""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


setup(cmdclass={"build_py": BuildWithCommit})
