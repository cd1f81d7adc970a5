"""Builds the hot modules with mypyc into a folder, with the manifest by which `kquorum.compiled` uses them.

    python -m tools.compile_modules [--out build/compiled]

mypyc comes with mypy; a C compiler and Python's headers are needed. The sources stay as they are, and run where nothing
was built.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kquorum.compiled import MANIFEST, source_digest

ROOT = Path(__file__).parent.parent
# Of these packages all modules but __init__: the consensus core, which does no input and output.
PACKAGES = ("kquorum/raft", "kquorum/raft/leader", "kquorum/raft/follower")


def sources() -> list[str]:
    found = [path for package in PACKAGES for path in sorted((ROOT / package).glob("*.py"))]
    return [str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py"]


def build(names: Sequence[str], out: Path) -> None:
    """Compile the sources of these names, relative to the root, into `out`, which is replaced as a whole."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    with tempfile.TemporaryDirectory(prefix="kquorum-compile-") as work:
        made, generated = Path(work) / "made", Path(work) / "c"
        extensions = mypycify(list(names), opt_level="2", debug_level="0", target_dir=str(generated))
        distribution = Distribution({"name": "kquorum", "ext_modules": extensions})
        command = distribution.get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(made), str(Path(work) / "objects")
        command.ensure_finalized()
        command.run()
        modules = {
            str(path.relative_to(made)).split(".")[0].replace(os.sep, "."): str(path.relative_to(made))
            for path in made.rglob("*.so")
        }
        digests = {name: source_digest(ROOT / name) for name in names}
        manifest = {"python": sys.version, "modules": modules, "sources": digests}
        (made / MANIFEST).write_text(json.dumps(manifest, indent=1))
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "compiled")
    options = parser.parse_args()
    os.chdir(ROOT)
    names = sources()
    build(names, options.out)
    sys.stdout.write(f"compiled {len(names)} modules into {options.out}\n")


if __name__ == "__main__":
    main()
