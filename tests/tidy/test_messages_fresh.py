"""The modules of wire/messages are what kio's classes say."""

from pathlib import Path

from tests.support.tree import ROOT
from tools import render_messages


def test_generated_modules_are_fresh(tmp_path: Path) -> None:
    written = render_messages.render(tmp_path)
    stale = [
        str(path)
        for path in written
        if not (ROOT / path).is_file() or (ROOT / path).read_text() != (tmp_path / path).read_text()
    ]
    assert stale == [], "run 'make messages'"
    present = {path.relative_to(ROOT) for path in (ROOT / render_messages.FOLDER).glob("*.py")}
    assert present == {*written, render_messages.FOLDER / "__init__.py"}


def test_ignorable_and_secret_fields_exist() -> None:
    """A name that kio has no more would protect nothing."""
    for request, names in render_messages.IGNORABLE.items():
        (text,) = (
            path.read_text()
            for path in (ROOT / render_messages.FOLDER).glob("*.py")
            if f"class {request}(Request[" in path.read_text()
        )
        for name in names:
            assert any(
                f" {name.rpartition('.')[2]}:" in line and "is_ignorable=True" in line
                for line in text.replace("(\n        ", "(").splitlines()
            ), f"{request}.{name}"
    everything = "".join(path.read_text() for path in (ROOT / render_messages.FOLDER).glob("*.py"))
    for name in render_messages.SECRET:
        assert f" {name}: " in everything
