"""No path of a machine, no secret of a desk and no crumbs in what is checked in."""

import re

import pytest

from tests.support.tree import ROOT, checked_in_files

# Written in pieces, so that this file does not find itself.
_MACHINE_PATHS = re.compile(
    "|".join(["/" + "work/", "/tmp/" + "play", "/" + "farm/", "/home/" + r"[a-z]+/", "/root" + "/"])
)
_CRUMBS = re.compile("|".join(["FIX" + "ME", "XX" + "X", "breakpoint" + r"\(", "TO" + "DO"]))
_TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".sh",
    ".proto",
    ".cfg",
    ".ini",
    ".yml",
    ".yaml",
    ".properties",
    ".txt",
    ".lock",
    ".in",
    "",
}


# What the commands of these pages write, where they are typed as they stand: logs, tables and keys are not checked in.
_WRITING = re.compile(r"^ *\$ kquorum (?:.* --out ([a-z][\w.]*)|certs make ([a-z]\w*))", re.MULTILINE)


def test_what_the_commands_of_the_docs_write_is_not_checked_in() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "audit.md", ROOT / "docs" / "security.md"]
    written = {out or certs for page in pages for out, certs in _WRITING.findall(page.read_text())}
    assert {"audit", "report.html", "certs"} <= written
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    missing = sorted(name for name in written if not {f"/{name}", f"/{name}/"} & set(ignored))
    assert missing == []


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in checked_in_files():
        if path.suffix not in _TEXT_SUFFIXES:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    return found


def test_there_are_files_to_look_at() -> None:
    assert ROOT / "pyproject.toml" in checked_in_files()


def test_no_path_of_a_machine_is_checked_in() -> None:
    assert lines_matching(_MACHINE_PATHS) == []


def test_no_crumbs_are_left() -> None:
    assert lines_matching(_CRUMBS) == []


def test_generated_and_private_files_are_ignored() -> None:
    names = {str(path.relative_to(ROOT)) for path in checked_in_files()}
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", "demo-out"))]


# Words that leave the subject of a sentence open, or that no technical text uses; in names too.
_QUAINT = re.compile(
    "(?<![a-z])(?:"
    + "|".join(["nobod" + "ys?", "whoev" + "er", "ane" + "w", "(?:is|are) to" + "ld", "wherefo" + "re"])
    + ")(?![a-z])",
    re.IGNORECASE,
)


def test_no_quaint_words() -> None:
    """A sentence names its subject: "no broker", "the replica that", "again", "the client gets"."""
    assert lines_matching(_QUAINT) == []


@pytest.mark.parametrize(
    ("line", "is_quaint"),
    [
        ("NOBO" + "DY leads", True),
        ("def test_it_is_kept_for_whoev" + "er_asks", True),
        ("the client is to" + "ld", True),
        ("a new leader", False),
        ("is the token that is toldable", False),
    ],
)
def test_a_quaint_word_is_noticed(line: str, is_quaint: bool) -> None:
    assert (_QUAINT.search(line) is not None) is is_quaint
