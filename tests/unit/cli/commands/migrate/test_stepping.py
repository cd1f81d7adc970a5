"""What `kquorum migrate step` compares before and after a controller's exchange."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kquorum.cli.commands.migrate import running
from kquorum.cli.commands.migrate.stepping import HashNote, Phase, compare_state
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.main import run

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


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "node.id=1\nprocess.roles=controller\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://127.0.0.1:19093\ncontroller.quorum.voters=1@127.0.0.1:19093\n"
        f"log.dirs={tmp_path}/data\n"
    )
    return path


@pytest.mark.parametrize("options", [(), ("--wait", "--timeout-ms", "100")])
def test_a_controller_that_is_slow_is_not_taken_for_stopped(
    options: tuple[str, ...],
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scripts stop it after exit status 0, which is for one that may be stopped."""
    monkeypatch.setattr(running, "phase_of", lambda *_: Phase.STOPPED)
    monkeypatch.setattr(running, "is_folder_in_use", lambda _: True)
    assert run(["migrate", "step", "-c", str(config), *options]) == 1
    assert "a program still uses" in capsys.readouterr().err


def test_a_controller_that_answers_in_the_meantime_is_looked_at(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = iter([Phase.STOPPED, Phase.BEFORE])
    monkeypatch.setattr(running, "phase_of", lambda *_: next(phases))
    monkeypatch.setattr(running, "is_folder_in_use", lambda _: True)
    monkeypatch.setattr(running, "_before", lambda _step: ("it may be stopped now", {}))
    assert run(["migrate", "step", "-c", str(config)]) == 0
    assert "it may be stopped now" in capsys.readouterr().out
