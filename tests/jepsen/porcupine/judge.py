"""Builds the Go program once, asks it, and compares its verdict with that of our own search."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.jepsen.checkers.linear.checker import Linearizable, Names, words_of
from tests.jepsen.checkers.linear.models import frozen
from tests.jepsen.checkers.linear.versioned import VersionedRegister
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, write_history

SOURCES = ("main.go", "go.mod", "go.sum")
HISTORY_FILE = "porcupine.jsonl"
TIMEOUT_S = 60.0
_BUILD_TIMEOUT_S = 300.0
_GRACE_S = 10.0
_VERDICTS = {"Ok": Verdict.VALID, "Illegal": Verdict.INVALID, "Unknown": Verdict.UNKNOWN}


class PorcupineUnavailable(Exception):
    """The reason: no Go, no module, or a program that does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What the program has to know: the names of the operations, and the register at the start."""

    read: str = "read"
    cas: str = "cas"
    version: int = 0
    value: object = None
    step: int = 1
    refusals: bool = False

    def arguments(self) -> list[str]:
        return [
            f"-read={self.read}",
            f"-cas={self.cas}",
            f"-version={self.version}",
            f"-value={json.dumps(self.value)}",
            f"-step={self.step}",
            f"-refusals={str(self.refusals).lower()}",
        ]

    def model(self) -> VersionedRegister:
        return VersionedRegister(
            version=self.version, value=frozen(self.value), step=self.step, refusals=self.refusals
        )

    @property
    def names(self) -> Names:
        return {self.read: "read", self.cas: "cas"}


def cache_folder() -> Path:
    """Where the program is kept between runs."""
    kept = os.environ.get("XDG_CACHE_HOME")
    return (Path(kept) if kept else Path.home() / ".cache") / "kquorum"


def built(cache: Path | None = None) -> Path:
    """The program, built unless the cache has it from these sources. Raises PorcupineUnavailable."""
    folder = Path(__file__).parent
    sources = hashlib.sha256(b"".join((folder / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    kept = cache_folder() if cache is None else cache
    program = kept / f"porcupine-{platform.system()}-{platform.machine()}-{sources}".lower()
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise PorcupineUnavailable("there is no go on the PATH")
    try:
        kept.mkdir(parents=True, exist_ok=True)
        # Two processes may build at once: each builds beside, and the last one's rename wins.
        with tempfile.TemporaryDirectory(dir=kept, prefix="building-") as beside:
            fresh = Path(beside) / program.name
            _build(go, folder, fresh)
            fresh.rename(program)
    except OSError as error:
        raise PorcupineUnavailable(f"the cache cannot be written: {error}") from error
    return program


def _build(go: str, folder: Path, program: Path) -> None:
    # Offline it has to fail at once instead of fetching a toolchain; and CI may set flags that are not ours.
    surroundings = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    command = [go, "build", "-trimpath", "-buildvcs=false", "-o", str(program), "."]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PorcupineUnavailable(f"go build did not run: {error}") from error
    if done.returncode != 0:
        raise PorcupineUnavailable(f"go build failed: {_last_line(done.stderr)}")


def judge(
    history: Path, timeout_s: float = TIMEOUT_S, *, spec: Spec | None = None, cache: Path | None = None
) -> Verdict:
    """What Porcupine says of the history in this file; UNKNOWN when the time was too short.

    Raises PorcupineUnavailable.
    """
    program = built(cache)
    limit = f"-timeout={max(1, round(timeout_s * 1000))}ms"
    try:
        done = subprocess.run(
            [str(program), limit, *(spec or Spec()).arguments(), str(history)],
            capture_output=True,
            text=True,
            timeout=timeout_s + _GRACE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict.UNKNOWN
    except OSError as error:
        raise PorcupineUnavailable(f"the program did not run: {error}") from error
    if done.returncode != 0:
        raise PorcupineUnavailable(f"the program failed: {_last_line(done.stderr)}")
    return _VERDICTS[json.loads(done.stdout)["result"]]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]


class Porcupine:
    """Porcupine must say of the versioned register what our search says.

    The operations that it is given are left in `folder`, to ask it again by hand. Where it cannot be had, or one
    of the two ran out of time, there is nothing to compare: then this says why, and the search's own verdict
    stands.
    """

    name = "porcupine"

    def __init__(
        self,
        folder: Path,
        *,
        spec: Spec | None = None,
        timeout_s: float = TIMEOUT_S,
        cache: Path | None = None,
    ) -> None:
        self._folder = folder
        self._spec = spec or Spec()
        self._timeout_s = timeout_s
        self._cache = cache
        words_of(self._spec.names, VersionedRegister.words)

    def check(self, history: History) -> Results:
        path = self._folder / HISTORY_FILE
        write_history(self._ours_of(history), path)
        try:
            theirs = judge(path, self._timeout_s, spec=self._spec, cache=self._cache)
        except PorcupineUnavailable as error:
            return {VALID_KEY: Verdict.VALID, "left_out": str(error)}
        ours: Verdict = Linearizable(self._spec.model(), self._spec.names).check(history)[VALID_KEY]
        return {
            VALID_KEY: _compared(theirs, ours),
            "porcupine": theirs,
            "search": ours,
            **_words(theirs, ours),
        }

    def _ours_of(self, history: History) -> History:
        return History(op for op in history if op.is_client and op.f in (self._spec.read, self._spec.cas))


def _compared(theirs: Verdict, ours: Verdict) -> Verdict:
    if Verdict.INVALID in (theirs, ours):
        return Verdict.INVALID
    return Verdict.UNKNOWN if theirs is ours is Verdict.UNKNOWN else Verdict.VALID


def _words(theirs: Verdict, ours: Verdict) -> dict[str, str]:
    if theirs is ours:
        return {}
    if Verdict.UNKNOWN in (theirs, ours):
        return {"note": "one of the two came to no verdict in its time, so nothing was compared"}
    return {"error": f"Porcupine says that the history is {theirs}, our search that it is {ours}: one errs"}
