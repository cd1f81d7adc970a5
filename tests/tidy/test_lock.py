"""requirements.lock is what pyproject.toml asks for: each package in one version, with the hashes of its files."""

import re
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.tree import ROOT

LOCK = ROOT / "requirements.lock"
TOOLS_LOCK = ROOT / "tools" / "lock-tools.lock"
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class Locked:
    """One entry of a lock."""

    version: str
    hashes: int


def locked(path: Path) -> dict[str, Locked]:
    """The entries of a lock by name. Fails for a line that is no pin with hashes."""
    found = dict[str, Locked]()
    text = re.sub(r"#.*", "", path.read_text()).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        pin, *hashes = re.split(r"\s+(?=--)", line)
        requirement = Requirement(pin)
        [bound] = requirement.specifier
        assert bound.operator == "==", f"{path.name}: {pin} names no single version"
        assert requirement.url is None, f"{path.name}: {pin} names a place"
        wrong = [each for each in hashes if not _HASH.match(each)]
        assert wrong == [], f"{path.name}: {pin} has options that are no SHA-256"
        name = canonicalize_name(requirement.name)
        assert name not in found, f"{path.name}: {pin} is there twice"
        found[name] = Locked(bound.version, len(hashes))
    return found


def asked_for() -> list[Requirement]:
    """What pyproject.toml asks for: to run, to develop and to build."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    lines = [*project["dependencies"], *pyproject["build-system"]["requires"]]
    for extra in project["optional-dependencies"].values():
        lines += extra
    return [Requirement(line) for line in lines]


def missing(requirements: list[Requirement], lock: dict[str, Locked]) -> list[str]:
    """Those requirements which the lock lacks, or has in a version out of their range."""
    said = []
    for each in requirements:
        entry = lock.get(canonicalize_name(each.name))
        if entry is None:
            said.append(f"{each} is not in the lock")
        elif not each.specifier.contains(entry.version, prereleases=True):
            said.append(f"{each} is locked as {entry.version}")
    return said


@pytest.mark.parametrize("path", [LOCK, TOOLS_LOCK], ids=lambda path: str(path.name))
def test_each_entry_of_a_lock_has_a_hash(path: Path) -> None:
    lock = locked(path)
    assert lock
    assert [name for name, entry in lock.items() if not entry.hashes] == []


def test_the_lock_has_what_pyproject_asks_for() -> None:
    assert missing(asked_for(), locked(LOCK)) == [], "run 'make lock'"


def test_the_lock_has_what_its_packages_need() -> None:
    """`make setup` installs nothing but the lock, so that what is missing in it is missing in .venv."""
    lock, needed, others = locked(LOCK), list[Requirement](), list[str]()
    for name, entry in lock.items():
        try:
            installed = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another platform
            continue
        if Version(installed.version) != Version(entry.version):
            others.append(f"{name} is installed as {installed.version}, and locked as {entry.version}")
        needed += [
            each
            for each in map(Requirement, installed.requires or [])
            if each.marker is None or each.marker.evaluate({"extra": ""})
        ]
    assert others == [], "run 'make setup': what another version needs says nothing of the lock"
    assert needed
    assert missing(needed, lock) == [], "run 'make lock'"


def test_the_lock_of_the_tools_has_them_in_the_versions_that_are_named() -> None:
    lines = TOOLS_LOCK.with_suffix(".in").read_text().splitlines()
    tools = [Requirement(line) for line in lines if not line.startswith("#")]
    assert {each.name for each in tools} == {"uv", "pip-audit"}
    assert missing(tools, locked(TOOLS_LOCK)) == [], "run 'make lock'"


@pytest.mark.parametrize("path", [LOCK, TOOLS_LOCK], ids=lambda path: str(path.name))
def test_a_lock_names_no_place_to_fetch_from(path: Path) -> None:
    assert not re.search(r"://|index-url|find-links|trusted-host", path.read_text())
