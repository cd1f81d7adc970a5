"""A wheel holds the package kquorum alone, and it works beside a project that has modules of our folders' names."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from setuptools import find_packages

from tests.support.tree import PACKAGES, ROOT, module_name, python_files

_THEIRS = "raise AssertionError('kquorum imports a module of the project that it is used in')\n"
_PROBE = """
import kquorum, kquorum.audit, kquorum.cli.main, kquorum.node.process, kquorum.wire.proto.inspect_pb2
import sys
print(kquorum.__file__)
print(*sorted(set(sys.argv[1].split(",")) & set(sys.modules)))
"""


def test_every_part_is_linked_into_the_package() -> None:
    links = {path.name: str(path.readlink()) for path in (ROOT / "kquorum").iterdir() if path.is_symlink()}
    assert links == {name: f"../{name}" for name in PACKAGES}


def test_the_build_finds_every_module_under_the_one_name() -> None:
    found = set(find_packages(str(ROOT), include=["kquorum*"]))
    assert {name.partition(".")[0] for name in found} == {"kquorum"}
    assert {module_name(path.parent) for path in python_files(*PACKAGES)} <= found


def project_with_our_names(folder: Path) -> Path:
    """Modules of another project, named as our folders are, which must not be imported."""
    for name in PACKAGES:
        (folder / f"{name}.py").write_text(_THEIRS)
    return folder


def printed_beside_another_project(folder: Path, *path: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, ",".join(PACKAGES)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, *path)))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_modules_of_our_names_in_another_project_are_left_alone(tmp_path: Path) -> None:
    _, theirs = printed_beside_another_project(project_with_our_names(tmp_path), ROOT)
    assert theirs == ""


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kquorum", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("kquorum ")


@pytest.mark.slow
def test_an_installed_wheel_is_one_package(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels, installed, project = tmp_path / "wheels", tmp_path / "installed", tmp_path / "project"
    sources = tmp_path / "sources"  # pip writes its build beside the sources
    left_out = shutil.ignore_patterns(
        ".git", ".venv*", "__pycache__", ".*_cache", "build", "tests", "*.egg-info"
    )
    shutil.copytree(ROOT, sources, symlinks=True, ignore=left_out)
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, sources], check=True
    )
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"kquorum"}
    subprocess.run([*pip, "install", "--no-deps", "--target", installed, wheel], check=True)
    project.mkdir()
    file, theirs = printed_beside_another_project(project_with_our_names(project), installed)
    assert file == str(installed / "kquorum" / "__init__.py")
    assert theirs == ""
