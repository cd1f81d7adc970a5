"""Which of the modules that `make compile` builds are used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.compiled import MANIFEST, CompiledFinder, source_digest, use
from tools.compile_modules import ROOT, build, sources

SOURCE = "raft/some.py"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with a manifest, and a source beside it."""
    (tmp_path / "raft").mkdir()
    (tmp_path / SOURCE).write_text("X = 1\n")
    write(tmp_path, python=sys.version)
    return tmp_path


def write(folder: Path, *, python: str) -> None:
    manifest = {
        "python": python,
        "modules": {"some_module_of_a_test": "some.so"},
        "sources": {SOURCE: source_digest(folder / SOURCE)},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))


def used(folder: Path | None, sources: Path) -> tuple[str, list[CompiledFinder]]:
    before = list(sys.meta_path)
    try:
        said = use(folder, sources)
        return said, [
            each for each in sys.meta_path if isinstance(each, CompiledFinder) and each not in before
        ]
    finally:
        sys.meta_path[:] = before


def test_modules_of_the_present_sources_are_used(built: Path) -> None:
    said, (finder,) = used(built, built)
    assert said == f"1 from {built}"
    assert finder.find_spec("json") is None
    spec = finder.find_spec("some_module_of_a_test")
    assert spec is not None
    assert spec.origin == str(built / "some.so")


def test_one_changed_source_is_enough_for_none(built: Path) -> None:
    (built / SOURCE).write_text("X = 2\n")
    assert used(built, built) == (f"none: {SOURCE} has changed since they were built (make compile)", [])
    (built / SOURCE).unlink()
    assert used(built, built)[1] == []


def test_modules_of_another_python_are_not_used(built: Path) -> None:
    write(built, python="3.10")
    said, finders = used(built, built)
    assert (said.startswith("none: those in"), finders) == (True, [])


@pytest.mark.parametrize("folder", [None, Path("missing")])
def test_without_built_modules_the_sources_are_used(folder: Path | None, tmp_path: Path) -> None:
    assert used(folder and tmp_path / folder, tmp_path) == ("none are built", [])


def test_the_consensus_core_is_what_is_built() -> None:
    names = sources()
    assert {"kquorum/raft/node.py", "kquorum/raft/leader/majority.py", "kquorum/raft/elections.py"} <= set(
        names
    )
    assert not [name for name in names if "adapters" in name or "__init__" in name]


_ASK = (
    "import kquorum.raft.log_index as it, kquorum.compiled; print(it.__file__); print(kquorum.compiled.STATE)"
)


@pytest.mark.slow
def test_a_process_uses_what_was_built(tmp_path: Path) -> None:
    (name,) = [each for each in sources() if each.endswith("raft/log_index.py")]
    build([name], tmp_path / "out")

    def asked(value: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", _ASK],
            env={"KQUORUM_COMPILED": value, "PATH": ""},
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=120,
            check=True,
        )
        return done.stdout.splitlines()

    file, state = asked(str(tmp_path / "out"))
    assert Path(file).is_relative_to(tmp_path)
    assert Path(file).suffix == ".so"
    assert state.startswith("1 from")
    file, state = asked("0")
    assert file.endswith("log_index.py")
    assert state == "none are built"
