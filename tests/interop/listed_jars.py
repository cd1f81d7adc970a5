"""The jars of one release, by a list of their checksums, straight from Maven Central: Maven itself is not needed."""

import hashlib
import os
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_CENTRAL = "https://repo1.maven.org/maven2"
_TIMEOUT_S = 60
_AT_ONCE = 8


class NotFetched(Exception):
    """A jar cannot be had, or is another than the listed one; the message names it."""


def list_of(version: str) -> Path | None:
    """The list of a release: lines of a sha256 and a path at the registry. None if there is none."""
    path = Path(__file__).with_name(f"kafka-{version}.sha256")
    return path if path.exists() else None


def fetch_listed(listed: Path, folder: Path) -> str:
    """The class path, after whatever was missing in `folder` has been fetched. Raises NotFetched."""
    entries = [line.split() for line in listed.read_text().splitlines()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        jars = list(pool.map(lambda entry: _fetch(folder, entry[1], entry[0]), entries))
    return os.pathsep.join(map(str, jars))


def _fetch(folder: Path, path: str, sha256: str) -> Path:
    jar = folder / path
    if jar.exists():
        return jar
    try:
        with urllib.request.urlopen(f"{_CENTRAL}/{path}", timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise NotFetched(f"{_CENTRAL}/{path} cannot be fetched: {error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise NotFetched(f"{_CENTRAL}/{path} is not the jar with the checksum {sha256}")
    jar.parent.mkdir(parents=True, exist_ok=True)
    fresh = jar.with_suffix(".part")
    fresh.write_bytes(content)
    fresh.replace(jar)
    return jar
