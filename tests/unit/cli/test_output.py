"""Tables: what is never broken, and what is wrapped where."""

import sys

import pytest

from kquorum.cli import output
from kquorum.cli.output import complain, console, make_table, print_table, share_room
from kquorum.wire.wording import counted
from tests.support.terminals import SENTENCE, on_a_terminal, widest, without_colours

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
FOLDER = "/srv/a-rather-long-name-of-a-folder/with-another-one-in-it/data/node-1"


def test_what_is_piped_is_neither_wrapped_nor_padded(capsys: pytest.CaptureFixture[str]) -> None:
    title = f"cluster {DIRECTORY} " + "and more " * 20
    print_table(title, ("#node", "directory id", "~found", "folder"), [(1, DIRECTORY, SENTENCE, FOLDER)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == title
    assert [line for line in lines if line != line.rstrip() and line != title] == []
    (row,) = [line for line in lines if DIRECTORY in line and line != title]
    assert row.split() == f"1 {DIRECTORY} {SENTENCE} {FOLDER}".split()


def test_on_a_terminal_only_sentences_are_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    print_table("a title", ("#node", "id", "~found", "~remedy"), [(1, DIRECTORY, SENTENCE, "start it")])
    lines = terminal.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert sum(DIRECTORY in line for line in lines) == 1
    assert sum("observers" in line for line in lines) == 2


def test_an_id_too_wide_for_the_terminal_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    print_table("", ("topic", "id", "folder"), [("orders", DIRECTORY, FOLDER)])
    assert [line for line in terminal.getvalue().splitlines() if DIRECTORY in line and FOLDER in line]


def test_a_list_of_topics_fits_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    columns = ("topic", "id", "#partitions", "#replicas", "#no\nleader", "#short\nisr")
    print_table("1 topic", columns, [("orders", DIRECTORY, 6, 3, 0, 0)])
    assert max(len(line.rstrip()) for line in terminal.getvalue().splitlines()) <= 80


WHO = "User:svc-metadata-operator (kafka-configs@10.0.0.17)"
WHY = 'INCREMENTAL_ALTER_CONFIGS: alter configs: topic orders.of.the.north (retention.ms) "OPS-815: keep a week"'
ASKED = ("time", "#offset", "~who", "~why", "~what")
CHANGED = ("", "which", "~what", "~who", "~why", "at", "#offset")
TIME, WHICH, DID = (
    "2026-11-20 12:00:01.123",
    "orders.of.the.north-and-of-the-whole-west-17",
    "isr 11 12 13 → 11 12",
)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    ("columns", "row", "folding"),
    [
        (ASKED, (TIME, "4711", WHO, WHY, DID), None),
        (CHANGED, ("~", WHICH, DID, WHO, WHY, TIME, "4711"), "which"),
    ],
    ids=["who", "diff"],
)
def test_names_stay_whole_where_a_table_would_break_them(
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    columns: tuple[str, ...],
    row: tuple[object, ...],
    folding: str | None,
) -> None:
    terminal = on_a_terminal(monkeypatch, width)
    print_table("who changed it", columns, [row], spare=("#offset", "at"), folding=folding, stacking=True)
    lines = without_colours(terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= width
    for word in (*WHO.split(), *WHY.split(), TIME, "4711"):
        assert any(word in line for line in lines), (word, lines)
    assert any(line.split() == ["what", *DID.split()] for line in lines)


def test_a_table_with_room_for_its_words_is_not_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    print_table("", ("time", "~who"), [(TIME, "User:alice"), (TIME, "User:bob")], stacking=True)
    assert [line.split() for line in terminal.getvalue().splitlines() if "who" in line] == [["time", "who"]]


def test_line_breaks_in_headings_are_for_terminals() -> None:
    assert [str(column.header) for column in make_table("", ("#no\nleader",), [(1,)]).columns] == [
        "no leader"
    ]


def test_narrow_sentences_get_what_they_want_and_the_others_share() -> None:
    assert share_room({0: 30, 1: 100}, 90) == {0: 30, 1: 60}
    assert share_room({0: 100, 1: 100}, 10) == {0: 12, 1: 12}


def test_numbers_and_their_nouns() -> None:
    assert [counted(1, "topic"), counted(0, "topic"), counted(1697, "topic")] == [
        "1 topic",
        "0 topics",
        "1,697 topics",
    ]


def test_a_line_is_said_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    output.say(f"[red] {FOLDER} {FOLDER}")
    assert capsys.readouterr().out == f"[red] {FOLDER} {FOLDER}\n"


def test_what_can_be_spared_is_left_out_of_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    columns, row = ("topic", "id", "#log\nend", "other id"), ("orders", DIRECTORY, 1, DIRECTORY)
    print_table("nearly", (*columns[:3], "~why"), [(*row[:3], SENTENCE)], spare=("id",))
    assert DIRECTORY in terminal.getvalue()
    print_table("2 ids", columns, [row], spare=("#log\nend", "other id"))
    print_table("3 ids", (*columns, "id 3"), [(*row, DIRECTORY)], spare=("#log\nend", "other id"))
    shown = terminal.getvalue()
    assert "2 ids\n" in shown, "closer together, all of it fits"
    assert "3 ids (a wider terminal shows more: log end)\n" in shown
    assert widest(shown) <= 80


def test_nothing_is_left_out_of_what_is_piped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("topic", "folder"), [("orders", FOLDER * 3)], spare=("topic",), folding="folder")
    out = capsys.readouterr().out
    assert "orders" in out
    assert FOLDER * 3 in out


def test_names_are_broken_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    name = "a.name.of.a.config." * 4
    print_table("", ("config", "~value", "from"), [(name, FOLDER, "config file")], folding="config")
    assert widest(terminal.getvalue()) <= 80
    assert FOLDER not in terminal.getvalue()


def test_titles_are_broken_at_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_a_terminal(monkeypatch)
    print_table(SENTENCE, ("topic",), [("orders",)])
    assert widest(terminal.getvalue()) <= 80


def test_brackets_are_no_markup(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder or a topic may have a name such as `[red]`."""
    console().print("a[red]b[/red]", "c[/x]")
    print_table("of [dim]", ("name [b]",), [("[bold]x[/bold]",)])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    complain("no [folder] here[/]")
    shown = capsys.readouterr()
    assert "a[red]b[/red] c[/x]" in shown.out
    assert "of [dim]" in shown.out
    assert "name [b]" in shown.out
    assert "[bold]x[/bold]" in shown.out
    assert "no [folder] here[/]" in shown.err
