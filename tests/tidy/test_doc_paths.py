"""The docs name only paths, links and files to read first that exist, and each room has its line in architecture.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tree import PACKAGES, ROOT, checked_in_files, python_files

_CODE = re.compile(r"`([^`\n]+)`")
# Folders and files, with `*`, with `{a,b}`, and with the test or the line that is meant behind a colon.
_PATH = re.compile(r"[\w*][\w.*-]*(?:/[\w.*{},-]+)*/?")
_SOURCES = (".py", ".md", ".proto")
_READ_FIRST = re.compile(r"`(\w+(?:/\w+)*\.py)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *sorted(ROOT.glob("docs/*.md")),
    ]


def top_level() -> set[str]:
    """The names at the top of what is checked in; folders that a command leaves do not count."""
    return {path.relative_to(ROOT).parts[0] for path in checked_in_files()}


def path_in(code: str, roots: set[str]) -> str | None:
    """The path of the project that a piece of code in a page names; None if it names none."""
    path = code.split(":", 1)[0]
    if not _PATH.fullmatch(path):
        return None
    first, slash, _ = path.partition("/")
    if slash and first in roots:
        return path
    return path if path.endswith(_SOURCES) and not path.startswith("kquorum.") else None


def exists(path: str, names: set[str]) -> bool:
    """Whether the path is there, for each of its `{a,b}`. A bare name of a source may be in any folder."""
    braces = re.search(r"\{([^}]*)\}", path)
    if braces:
        return all(exists(path.replace(braces[0], one), names) for one in braces[1].split(","))
    if "/" not in path:
        return path in names or any(True for _ in ROOT.glob(path))
    return any(True for _ in ROOT.glob(path.rstrip("/")))


def named_paths() -> Iterator[tuple[str, str]]:
    roots = top_level()
    for page in pages():
        for code in _CODE.findall(page.read_text()):
            path = path_in(code, roots)
            if path is not None:
                yield str(page.relative_to(ROOT)), path


def test_every_path_that_the_docs_name_exists() -> None:
    names = {path.name for path in checked_in_files()}
    found = sorted(set(named_paths()))
    assert len(found) > 200
    assert [place for place in found if not exists(place[1], names)] == []


def test_every_file_that_a_package_says_to_read_exists() -> None:
    found = [
        (package, name)
        for package in python_files(*PACKAGES)
        if package.name == "__init__.py"
        for name in _READ_FIRST.findall(package.read_text())
    ]
    assert len(found) > 20
    missing = [
        f"{package.relative_to(ROOT)}: {name}"
        for package, name in found
        if not any(package.parent.rglob(name)) and not (ROOT / name).exists()
    ]
    assert missing == []


def test_every_room_has_its_line_in_the_architecture() -> None:
    """Rooms: the packages, the folders in them, and the folders of the controller."""
    rooms = {
        path.parent.relative_to(ROOT).as_posix()
        for path in python_files(*PACKAGES)
        if path.name == "__init__.py"
    }
    rooms = {room for room in rooms if room.count("/") <= 1 or room.startswith("metadata/controller/")}
    table = (ROOT / "docs" / "architecture.md").read_text().split("## The rooms\n")[1].split("\n## ")[0]
    described = {code for line in table.splitlines() for code in _CODE.findall(line.split(" | ")[0])}
    assert len(rooms) > 30
    assert sorted(rooms - described) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raft/node.py", "raft/node.py"),
        ("tests/unit/raft/test_x.py::test_y", "tests/unit/raft/test_x.py"),
        ("metadata/controller/", "metadata/controller/"),
        ("log_writer.py", "log_writer.py"),
        ("node.step(now_ms, input)", None),
        ("text/html", None),
        ("kquorum log dump raft/log", None),
    ],
)
def test_a_path_is_seen(code: str, expected: str | None) -> None:
    assert path_in(code, {"raft", "tests", "metadata"}) == expected


@pytest.mark.parametrize("path", ["raft/gone.py", "raft/{node,gone}.py", "gone.py", "raft/gone/"])
def test_a_missing_path_is_seen(path: str) -> None:
    assert not exists(path, {"node.py"})


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them: lower case, punctuation dropped, spaces as hyphens."""
    headings = _HEADING.findall(_FENCED.sub("", page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    """The links within the project whose file or heading is missing."""
    for link in _LINK.findall(_FENCED.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            yield f"{page.relative_to(ROOT)}: {link}"


def test_every_link_within_the_docs_leads_somewhere() -> None:
    assert sum(len(_LINK.findall(page.read_text())) for page in pages()) > 100
    assert [link for page in pages() for link in broken_links(page)] == []


def test_the_anchor_of_a_heading_is_that_of_github() -> None:
    page = "# A node's metadata differs\n\n## TLS & SASL, `both`\n\n```\n# no heading\n```\n"
    assert anchors(page) == {"a-nodes-metadata-differs", "tls--sasl-both"}
