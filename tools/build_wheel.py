"""Builds a wheel: of the sources alone, for any Python, or with the modules of `make compile`, for this one.

    python -m tools.build_wheel [--out dist] [--compiled build/compiled | --pure]

A wheel with built modules holds the sources as well. The built modules stand in `kquorum/_compiled` with their
manifest, where `kquorum.compiled` finds them; `KQUORUM_COMPILED=0` runs the sources there too.
"""

import argparse
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

from kquorum.cli.version import commit_text
from kquorum.compiled import MANIFEST, PACKAGED, use

ROOT = Path(__file__).parent.parent
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", ".*_cache", "build", "tests", "*.egg-info", "dist"
)


class NotBuilt(Exception):
    """There are no built modules for this wheel."""


def pure_wheel(out: Path) -> Path:
    """The sources as a wheel in the folder `out`; of a copy, because pip writes beside what it builds."""
    with tempfile.TemporaryDirectory(prefix="kquorum-wheel-") as work:
        sources, made = Path(work) / "sources", Path(work) / "made"
        shutil.copytree(ROOT, sources, symlinks=True, ignore=_LEFT_OUT)
        command = [
            sys.executable,
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            "wheel",
            "--no-deps",
        ]
        command += ["--no-build-isolation", "--wheel-dir", str(made), str(sources)]
        subprocess.run(command, check=True, env={**os.environ, "KQUORUM_COMMIT": commit_text() or ""})
        (wheel,) = made.iterdir()
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, out / wheel.name))


def platform_tag() -> str:
    """Of this Python: `cp311-cp311-linux_x86_64`."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{system}"


def with_compiled(pure: Path, compiled: Path, out: Path, *, sources: Path = ROOT) -> Path:
    """The wheel `pure` with the modules that were built in `compiled`, as another wheel in the folder `out`.

    Raises NotBuilt if they are not of these sources and this Python.
    """
    before = list(sys.meta_path)
    said = use(compiled, sources)
    is_used, sys.meta_path[:] = sys.meta_path != before, before
    if not is_used:
        raise NotBuilt(f"no wheel with the modules in {compiled}: {said}")
    name, version = pure.name.split("-")[:2]
    info, tag = f"{name}-{version}.dist-info", platform_tag()
    with zipfile.ZipFile(pure) as archive:
        files = {each: archive.read(each) for each in archive.namelist() if each != f"{info}/RECORD"}
    lines = files[f"{info}/WHEEL"].decode().splitlines()
    kept = [line for line in lines if line and not line.startswith(("Tag:", "Root-Is-Purelib:"))]
    files[f"{info}/WHEEL"] = "\n".join([*kept, "Root-Is-Purelib: false", f"Tag: {tag}", ""]).encode()
    for path in sorted(compiled.rglob("*")):
        if path.is_file() and (path.suffix == ".so" or path.name == MANIFEST):
            files[f"kquorum/{PACKAGED}/{path.relative_to(compiled).as_posix()}"] = path.read_bytes()
    record = [f"{each},sha256={_digest(data)},{len(data)}" for each, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in files.items():
            archive.writestr(each, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--compiled", type=Path, default=ROOT / "build" / "compiled")
    parser.add_argument("--pure", action="store_true", help="the sources alone")
    options = parser.parse_args()
    if options.pure:
        wheel = pure_wheel(options.out)
    else:
        with tempfile.TemporaryDirectory(prefix="kquorum-wheel-") as work:
            try:
                wheel = with_compiled(pure_wheel(Path(work)), options.compiled, options.out)
            except NotBuilt as error:
                raise SystemExit(f"tools.build_wheel: {error}") from None
    sys.stdout.write(f"{wheel}\n")


if __name__ == "__main__":
    main()
