"""A folder of another user must not run code, wherever a command is started from.

Python puts the current folder first on the path of modules for `python -m ...` and for an empty entry of PYTHONPATH,
and Spark starts its workers that way. An operator who changes into a folder to look at the log in it would run what
lies there.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.spark_replay import session
from tests.support.sample_logs import write_sample

# Modules that the interpreter, Spark's daemon and its workers, and this project import at one time or another.
PLANTED = (
    *("heapq", "json", "socket", "struct", "random", "queue", "decimal", "zipfile", "tempfile", "ctypes"),
    *("numpy", "pandas", "pyarrow", "pyspark", "lz4", "crc32c", "cramjam", "typer", "rich"),
    *(
        "cli",
        "wire",
        "metadata",
        "raft",
        "storage",
        "snapshots",
        "spark_replay",
        "sitecustomize",
        "usercustomize",
    ),
)
_CODE = "import os\nopen(os.path.join({folder!r}, 'ran-{name}-' + str(os.getpid())), 'w').close()\nraise ImportError\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a metadata log and a module under each of the names; a module that runs leaves a file beside it."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    write_sample(folder)
    for name in PLANTED:
        code = _CODE.format(folder=str(folder), name=name)
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return folder


def _run_there(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("kquorum")
    environment = {
        key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONSAFEPATH"}
    }
    return subprocess.run(
        [command, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _what_ran(folder: Path) -> list[str]:
    return sorted({path.name.split("-")[1] for path in folder.glob("ran-*")})


@pytest.mark.parametrize(
    "arguments",
    [("log", "dump", "."), ("log", "verify", "."), ("log", "state-hash", ".")],
    ids=" ".join,
)
def test_a_read_of_a_log_imports_nothing_from_its_folder(hostile: Path, arguments: tuple[str, ...]) -> None:
    done = _run_there(hostile, *arguments)
    assert "Traceback" not in done.stderr
    assert (_what_ran(hostile), done.stdout != "") == ([], True)


@pytest.mark.spark
@pytest.mark.slow
def test_an_audit_imports_nothing_from_the_folder_of_the_log(hostile: Path, tmp_path: Path) -> None:
    done = _run_there(hostile, "audit", "build", ".", "--out", str(tmp_path / "audit"))
    assert _what_ran(hostile) == []
    assert done.returncode in {0, 3}, done.stderr
    assert (tmp_path / "audit" / "records").is_dir()


def test_sparks_workers_take_the_safe_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above shows with a real Spark, which takes half a minute to start."""
    for name in ("PYTHONSAFEPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", ".", "planted", "/elsewhere")))
    session._give_workers_this_python()
    assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(session.PROJECT), "/elsewhere"]
    for name in ("PYTHONSAFEPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name)
