"""A wheel holds the package kquorum alone, and it works beside a project that has modules of our folders' names."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from setuptools import find_packages

from kquorum.cli.version import BAKED_IN, commit_text
from kquorum.compiled import MANIFEST, PACKAGED, PYTHON
from tests.support.tree import PACKAGES, ROOT, module_name, python_files
from tools.build_wheel import NotBuilt, platform_tag, pure_wheel, with_compiled
from tools.compile_modules import build, sources

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


def install(wheel: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*command, "--no-deps", "--target", folder, wheel], check=True)


@pytest.mark.slow
def test_an_installed_wheel_is_one_package(tmp_path: Path) -> None:
    installed, project = tmp_path / "installed", tmp_path / "project"
    wheel = pure_wheel(tmp_path / "wheels")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
        commit = commit_text()
        if commit is not None:  # the sources may be no checkout
            assert archive.read(f"kquorum/{BAKED_IN}").decode().strip() == commit
    assert {name for name in tops if not name.endswith(".dist-info")} == {"kquorum"}
    install(wheel, installed)
    project.mkdir()
    file, theirs = printed_beside_another_project(project_with_our_names(project), installed)
    assert file == str(installed / "kquorum" / "__init__.py")
    assert theirs == ""


_ASK = "import kquorum.raft.log_index as m, kquorum.compiled as c; print(m.__file__); print(c.STATE)"


def module_used(installed: Path, **environment: str) -> tuple[Path, str]:
    """The file of a module that is built, and what the process says of built modules."""
    command = [sys.executable, "-P", "-c", _ASK]
    done = subprocess.run(
        command,
        env={"PYTHONPATH": str(installed), "PATH": "", **environment},
        cwd=installed.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    file, said = done.stdout.splitlines()
    return Path(file), said


@pytest.mark.slow
def test_a_wheel_with_compiled_modules_runs_them_or_its_sources(tmp_path: Path) -> None:
    compiled, installed = tmp_path / "compiled", tmp_path / "installed"
    build([each for each in sources() if each.endswith(("raft/log_index.py", "raft/elections.py"))], compiled)
    wheel = with_compiled(pure_wheel(tmp_path / "pure"), compiled, tmp_path / "wheels")
    assert wheel.name.endswith(f"-{platform_tag()}.whl")
    install(wheel, installed)
    folder = installed / "kquorum" / PACKAGED
    file, said = module_used(installed)
    assert (file.suffix, file.is_relative_to(folder)) == (".so", True), (file, said)
    assert said == f"2 from {folder}"
    source, said = module_used(installed, KQUORUM_COMPILED="0")
    assert (source, said) == (installed / "kquorum" / "raft" / "log_index.py", "none are built")
    with source.open("a") as edited:
        edited.write("# edited\n")
    assert module_used(installed)[0] == source


def test_modules_of_other_sources_make_no_wheel(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    manifest = {"python": PYTHON, "modules": {}, "sources": {"kquorum/raft/node.py": "another"}}
    (compiled / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(NotBuilt, match=r"node\.py has changed"):
        with_compiled(tmp_path / "kquorum-1-py3-none-any.whl", compiled, tmp_path)


def test_a_wheel_with_compiled_modules_says_for_which_python(tmp_path: Path) -> None:
    compiled, pure = tmp_path / "compiled", tmp_path / "kquorum-1-py3-none-any.whl"
    (compiled / "kquorum").mkdir(parents=True)
    (compiled / "kquorum" / "some.so").write_bytes(b"built")
    manifest = {"python": PYTHON, "modules": {"some_module_of_a_test": "kquorum/some.so"}, "sources": {}}
    (compiled / MANIFEST).write_text(json.dumps(manifest))
    before = sys.meta_path[:]
    with zipfile.ZipFile(pure, "w") as archive:
        archive.writestr("kquorum/__init__.py", "")
        archive.writestr(
            "kquorum-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("kquorum-1.dist-info/RECORD", "kquorum/__init__.py,,\n")
    wheel = with_compiled(pure, compiled, tmp_path / "out")
    assert sys.meta_path == before, "this process goes on with the modules that it had"
    with zipfile.ZipFile(wheel) as archive:
        about = archive.read("kquorum-1.dist-info/WHEEL").decode()
        record = archive.read("kquorum-1.dist-info/RECORD").decode()
        names = archive.namelist()
    assert about == f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {platform_tag()}\n"
    assert [line.partition(",")[0] for line in record.splitlines()] == names
    assert f"kquorum/{PACKAGED}/kquorum/some.so,sha256=" in record
