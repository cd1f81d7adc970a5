"""What `kquorum migrate step` compares before and after a controller's exchange."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kquorum.cli.commands.migrate.stepping import HashNote, compare_state
from kquorum.cli.failures import CliError, ExitStatus

NOTE = HashNote(node_id=3, target="kquorum", offset=41, state_hash="aaaa")


def node(folder: Path) -> Any:
    return SimpleNamespace(node_id=3, metadata_log_dir=folder)


@pytest.mark.parametrize("now", ["aaaa", None])
def test_the_same_state_or_none_that_can_be_compared(
    now: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def hash_at(_folder: Path, end_offset: int) -> str | None:
        asked.append(end_offset)
        return now

    monkeypatch.setattr("kquorum.cli.commands.migrate.stepping.hash_at", hash_at)
    assert compare_state(node(tmp_path), NOTE) == now
    assert asked == [42]


def test_another_state_stops_the_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquorum.cli.commands.migrate.stepping.hash_at", lambda *_: "bbbb")
    with pytest.raises(CliError, match="STATE DIFFERS: at offset 41 controller 3 had aaaa") as raised:
        compare_state(node(tmp_path), NOTE)
    assert raised.value.status is ExitStatus.FAILED


@pytest.mark.parametrize("text", ["", "[]", "{", '{"node_id": 3}', "\0"])
def test_a_damaged_note_is_refused_with_its_place(text: str, tmp_path: Path) -> None:
    assert HashNote.read(tmp_path) is None
    NOTE.write(tmp_path)
    assert HashNote.read(tmp_path) == NOTE
    (tmp_path / "kquorum-migration.json").write_text(text)
    with pytest.raises(CliError, match=r"kquorum-migration\.json is damaged"):
        HashNote.read(tmp_path)
