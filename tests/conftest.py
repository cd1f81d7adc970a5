"""Fixtures shared by all tests."""

import os
import signal
import sys
import time
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from kquorum.compiled import CompiledFinder
from tests.support.tree import PACKAGES

# How fast this machine is, and what else it does, is no property of ours.
settings.register_profile("kquorum", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kquorum")

# gRPC, while in use, makes a third of the children of a fork crash that Spark starts Java with (its fork handlers run
# in them; measured: 146 of 400). No child of ours goes on with gRPC. It is read when gRPC is imported, so: here.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


class OneNameForEachModule(MetaPathFinder):
    """The root of the project is on the path, where `import raft` would make a second copy of `kquorum.raft`."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raises ImportError for the folders that are parts of kquorum."""
        if path is None and fullname in PACKAGES:
            raise ImportError(f"import kquorum.{fullname}: {fullname} is a part of the package kquorum")


sys.meta_path.insert(0, OneNameForEachModule())

_UMASK = os.umask(0o022)
os.umask(_UMASK)

PROJECT_ROOT = Path(__file__).resolve().parent.parent
OF_ONE_PROCESS = ("contracts", "properties", "unit")


@pytest.fixture(scope="session")
def real_logs() -> Path:
    """A folder of metadata directories of real Kafka clusters, with `expected.json`; skips where there is none."""
    named = os.environ.get("KQUORUM_REAL_LOGS")
    folder = Path(named) if named else PROJECT_ROOT.parent / "shared" / "real-logs"
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no real logs in {folder}; name their folder in KQUORUM_REAL_LOGS")
    return folder.resolve()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """A folder of log directories of real brokers, with `expected/NAME.json` of each; skips where there is none."""
    named = os.environ.get("KQUORUM_REAL_DATA")
    folder = Path(named) if named else PROJECT_ROOT.parent / "shared" / "real-data"
    if not (folder / "expected").is_dir():
        pytest.skip(f"no log directories in {folder}; name their folder in KQUORUM_REAL_DATA")
    return folder.resolve()


BUILT = {name for each in sys.meta_path if isinstance(each, CompiledFinder) for name in each.files}


def _skip_if_built(module: str, what: str) -> None:
    if module in BUILT:
        pytest.skip(f"compiled code does not look again at what the test replaces: {what} of {module}")


@pytest.fixture
def monkeypatch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Pytest's own. On compiled modules it skips the tests that replace a function or a constant of one of these."""
    if BUILT:
        plain = monkeypatch.setattr

        def setattr_of_sources(target: Any, name: Any, *rest: Any, **options: Any) -> None:
            if isinstance(target, str):
                _skip_if_built(target.rpartition(".")[0], target)
                _skip_if_built(target.rpartition(".")[0].rpartition(".")[0], target)
            elif isinstance(target, ModuleType):
                _skip_if_built(target.__name__, name)
            elif isinstance(target, type):
                _skip_if_built(target.__module__, f"{target.__name__}.{name}")
            plain(target, name, *rest, **options)

        object.__setattr__(monkeypatch, "setattr", setattr_of_sources)
    return monkeypatch


@pytest.fixture(autouse=True)
def interrupts_are_pythons() -> None:
    """Spark takes SIGINT for itself and keeps it; asyncio minds a signal only while Python's own handler is there
    (measured: 12 of 40 interrupted commands then ended otherwise)."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def files_are_made_as_before() -> None:
    """A command that makes a node's files takes a stricter umask for its process; here that process goes on, and a
    fixture of a module may have run one."""
    os.umask(_UMASK)


@pytest.fixture(autouse=True)
def machine_has_just_started(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The monotonic clock counts from the start of the machine, so that code which takes 0 for "long ago" is right for
    months and wrong for the first minutes. Tests of one process begin in those; uvloop has a clock of its own."""
    if request.path.relative_to(PROJECT_ROOT).parts[1] not in OF_ONE_PROCESS:
        return
    clock_ns, began_ns = time.monotonic_ns, time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock_ns() - began_ns)
    monkeypatch.setattr(time, "monotonic", lambda: (clock_ns() - began_ns) / 1e9)


# The longest first, or one of them would begin last and all other processes wait for it.
LONGEST_FIRST = ("spark", "jepsen", "integration", "interop", "simulation", "properties")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By folder; the order within one stays."""
    items.sort(key=lambda item: _turn(item.path))


def _turn(path: Path) -> int:
    folder = path.relative_to(PROJECT_ROOT).parts[1]
    return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)


class _ByFile(LoadScopeScheduling):
    """A file's tests go to one process, so that a cluster which they share is started once; those of Spark all go to
    one, for it takes seconds to start and minutes to get warm; but for the file whose many streams are processes of
    their own."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        is_sparks = file.startswith("tests/spark/") and file != "tests/spark/stream/test_stream_killed.py"
        return "spark" if is_sparks else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile | None:
    return _ByFile(config, log) if config.getoption("dist") == "loadfile" else None
