"""The modules that `make compile` has built with mypyc: used in the place of their sources, while these are the same.

The built modules stand in `build/compiled` beside a manifest, which names the sources by their hashes. Compiled modules
know each other's classes, so either all of them are used or none: one changed source is enough for none. A wheel that
was made for one Python has them in `kquorum/_compiled` (tools/build_wheel.py).

KQUORUM_COMPILED=0 uses the sources in any case; the name of another folder uses what was built there.
"""

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

ENVIRONMENT: Final = "KQUORUM_COMPILED"
MANIFEST: Final = "manifest.json"
PACKAGED: Final = "_compiled"
# What an extension module must be built for: the implementation, its minor version, and the platform.
PYTHON: Final = EXTENSION_SUFFIXES[0]
_ROOT: Final = Path(__file__).parent.parent


class CompiledFinder(MetaPathFinder):
    """`files` has the built module for each name."""

    def __init__(self, files: dict[str, Path]) -> None:
        self.files = files

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002 - Python's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        found = self.files.get(fullname)
        if found is None:
            return None
        return spec_from_file_location(fullname, found, loader=ExtensionFileLoader(fullname, str(found)))


def folder_in_use() -> Path | None:
    """Where built modules may stand; None if the sources are to be used."""
    asked = os.environ.get(ENVIRONMENT, "")
    if asked:
        return None if asked == "0" else Path(asked)
    packaged = Path(__file__).parent / PACKAGED
    return packaged if packaged.is_dir() else _ROOT / "build" / "compiled"


def use(folder: Path | None, sources: Path = _ROOT) -> str:
    """Have Python import the modules that were built in `folder`, if all of them are of the present sources. Returns
    what is used, in words."""
    if folder is None or not (folder / MANIFEST).is_file():
        return "none are built"
    import json

    manifest = json.loads((folder / MANIFEST).read_text())
    if manifest["python"] != PYTHON:
        return f"none: those in {folder} are of another Python (make compile)"
    for name, digest in manifest["sources"].items():
        if source_digest(sources / name) != digest:
            return f"none: {name} has changed since they were built (make compile)"
    files = {name: folder / file for name, file in manifest["modules"].items()}
    sys.meta_path.insert(0, CompiledFinder(files))
    return f"{len(manifest['sources'])} from {folder}"


def source_digest(path: Path) -> str:
    """Empty for a file that cannot be read."""
    import hashlib

    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


# What this process uses, in words.
STATE: Final = use(folder_in_use())
