"""What `--help` and a mistyped command line show, at 80 columns."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kquorum.cli.command_tree import command_names, find, load
from kquorum.cli.main import run

EXAMPLES = {
    f"{name} {inner}".strip(): lines
    for name in command_names()
    for inner, lines in find(name).examples.items()
}


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


def commands() -> Iterator[str]:
    """Every command that runs something, as it is typed."""
    for name in command_names():
        loaded: Any = load(name)
        inner = getattr(loaded, "commands", {})
        yield from (f"{name} {each}" for each in inner)
        if not inner or loaded.invoke_without_command:
            yield name


def test_every_command_has_examples_that_fit() -> None:
    assert sorted(EXAMPLES) == sorted(commands())
    assert [line for lines in EXAMPLES.values() for line in lines if len(line) > 76] == []


@pytest.mark.parametrize("command", sorted(EXAMPLES))
def test_help_names_every_option_whole(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "\u2026" not in out
    assert command == "completion" or "completion" not in out
    assert EXAMPLES[command][0] in out


@pytest.mark.parametrize("command", sorted(EXAMPLES))
def test_a_narrow_terminal_shows_every_option_whole(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERMINAL_WIDTH", "60")
    assert run([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    shown = out.replace("\n", " ").split()
    name, *parts = command.split()
    loaded: Any = load(name)
    for part in parts:
        loaded = loaded.commands[part]
    shown_options = [option for option in loaded.params if not getattr(option, "hidden", False)]
    options = {name for option in shown_options for name in option.opts if name.startswith("--")}
    assert [name for name in options if name not in shown] == []
    assert "\u2026" not in out
    assert "\\[" not in out
    lines = out.splitlines()
    assert [line for line in EXAMPLES[command] if f"    {line}" not in lines] == []
    assert [line for line in lines if len(line) > 60 and line.strip() not in EXAMPLES[command]] == []


@pytest.mark.parametrize("name", command_names())
def test_what_stands_in_brackets_is_shown(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich takes it for markup and leaves it out."""
    for each in (command for command in commands() if command.split()[0] == name):
        loaded: Any = load(name)
        for part in each.split()[1:]:
            loaded = loaded.commands[part]
        texts = [loaded.help, *(getattr(option, "help", None) for option in loaded.params)]
        words = {word for text in texts if text for word in text.replace("\\[", "[").split() if "[" in word}
        monkeypatch.setenv("COLUMNS", "250")
        monkeypatch.setenv("TERMINAL_WIDTH", "250")
        assert run([*each.split(), "--help"]) == 0
        out = capsys.readouterr().out
        assert [word for word in words if word not in out] == []
        assert [line for line in EXAMPLES[each] if line not in out] == []


def test_the_option_for_a_first_user_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["format", "--help"]) == 0
    assert "SCRAM-SHA-512=[name=N,password=P]" in capsys.readouterr().out


def test_paragraphs_are_wrapped_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quorum", "upgrade", "--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    start = lines.index(next(line for line in lines if line.startswith("The command does the same")))
    assert min(len(line) for line in lines[start : start + 2]) > 55


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("quorum", "add-voter", "foo"), "(see `kquorum quorum add-voter --help`)"),
        (("quorum", "status", "--nonsense"), "(see `kquorum quorum status --help`)"),
        (("stat",), "error: no such command: stat (did you mean start?) (see `kquorum --help`)"),
    ],
)
def test_a_mistyped_line_is_reported_in_one_line(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(list(arguments)) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert told in error


def test_who_asks_for_json_gets_errors_in_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topics", "list", "-b", "127.0.0.1:1", "--json"]) == 6
    told = capsys.readouterr()
    assert json.loads(told.out)["exit_status"] == 6
    assert told.err == f"error: {json.loads(told.out)['error']}\n"
