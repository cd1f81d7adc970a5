"""The jars of Delta: the folder that they lie in, and fetching them there for a user who asks for it."""

import os
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Final

from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.output import remark
from spark_replay.delta import DeltaJar, DeltaMissing, check_jar, delta_jars

CENTRAL: Final = "https://repo1.maven.org/maven2"
_FOLDER: Final = "KQUORUM_DELTA_JARS"
_TIMEOUT_S: Final = 60
_LARGEST_BYTES: Final = 64 * 1024 * 1024


def jars_folder() -> Path:
    """The one that KQUORUM_DELTA_JARS names, else one among the user's caches."""
    named = os.environ.get(_FOLDER)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kquorum" / "delta-jars"


def fetch_jars() -> None:
    """Fetch what the folder lacks of the jars. Each is kept if its SHA-256 is the listed one. Raises CliError."""
    folder = jars_folder()
    try:
        for jar in delta_jars():
            if not (folder / jar.name).exists():
                _fetch(jar, folder)
    except DeltaMissing as error:
        raise CliError(str(error), status=ExitStatus.MISSING_REQUIREMENT) from None
    except OSError as error:
        raise CliError(
            f"cannot keep Delta's jars in {folder}: {error.strerror or error}; {_FOLDER} names another folder",
            status=ExitStatus.IO_ERROR,
        ) from None


def _fetch(jar: DeltaJar, folder: Path) -> None:
    address = f"{CENTRAL}/{jar.path}"
    remark(f"fetching {address} ...")
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - always CENTRAL's https
            content: bytes = answer.read(_LARGEST_BYTES)
    except (OSError, HTTPException) as error:
        raise CliError(f"{address} cannot be fetched: {error}", status=ExitStatus.UNREACHABLE) from None
    try:
        check_jar(jar, content, address)
    except DeltaMissing:
        raise CliError(
            f"what came from {address} is not the jar with the SHA-256 {jar.sha256}, and is not kept"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{jar.name}.part"
    fresh.write_bytes(content)
    fresh.replace(folder / jar.name)
