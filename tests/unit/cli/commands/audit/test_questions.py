"""The questions of `audit` without Spark: moments as they are written, options that do not fit, words and cells."""

from pathlib import Path

import pytest

from kquorum.cli.commands.audit.query import Asked, asked_by_options, asked_by_word, time_of
from kquorum.cli.failures import CliError
from kquorum.cli.main import run

NOON_MS = 1_769_860_800_000


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("0", Asked(offset=0)),
        ("20000", Asked(offset=20_000)),
        ("-1", Asked(offset=-1)),
        ("99999999999", Asked(offset=99_999_999_999)),
        ("100000000000", Asked(time_ms=100_000_000_000)),
        (str(NOON_MS), Asked(time_ms=NOON_MS)),
        ("2026-01-31T12:00", Asked(time_ms=NOON_MS)),
        ("2026-01-31T12:00:00Z", Asked(time_ms=NOON_MS)),
        ("2026-01-31T13:00+01:00", Asked(time_ms=NOON_MS)),
        ("2026-01-31", Asked(time_ms=NOON_MS - 12 * 3_600_000)),
        ("start", Asked(is_start=True)),
        ("end", Asked()),
    ],
)
def test_a_word_is_an_offset_or_a_time(text: str, asked: Asked) -> None:
    assert asked_by_word("A", text) == asked


@pytest.mark.parametrize(
    "text", ["noon", "", "2026-13-01", "1e5", "9" * 5000, "9" * 30, "\u0661\u0662", "12:00"]
)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(CliError) as refused:
        asked_by_word("A", text)
    assert refused.value.status == 2


def test_options_say_when_once() -> None:
    assert asked_by_options(7, None) == Asked(offset=7)
    assert asked_by_options(None, None) == Asked()
    assert asked_by_options(None, "7") == Asked(time_ms=7)
    with pytest.raises(CliError, match="choose one"):
        asked_by_options(7, "2026-01-31")
    with pytest.raises(CliError, match="no log goes that far"):
        asked_by_options(2**63, None)
    assert time_of("--time", "-5") == -5


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("as-of", "nowhere", "--partition", "3"), "--partition needs --topic"),
        (("as-of", "nowhere", "--offset", "1", "--time", "5"), "choose one"),
        (("as-of", "nowhere", "--json", "--csv", "-"), "choose one"),
        (("diff", "nowhere", "yesterday"), "neither ISO 8601"),
        (("timeline", "nowhere"), "--topic NAME or --broker ID"),
        (("who", "nowhere", "--topic", "a", "--broker", "1"), "--topic NAME or --broker ID"),
        (("unavailable", "nowhere", "--quorum", "--topic", "a"), "leave out --topic"),
        (("churn", "nowhere", "--since", "soon"), "neither ISO 8601"),
        (("as-of", "nowhere"), "nowhere does not exist"),
    ],
)
def test_what_does_not_fit_is_said_before_spark_is_started(
    arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command, path, *more = arguments
    assert run(["audit", command, str(tmp_path / path), *more]) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.out == "" or "--json" in more  # which says it there, too


def test_cells_are_safe_on_a_terminal() -> None:
    pytest.importorskip("pyspark")
    from kquorum.cli.commands.audit.answers import duration, plain
    from kquorum.wire.safe_text import safe_text

    assert safe_text("orders [bold]") == "orders [bold]"
    assert safe_text("a\x1b[31m\u202eb\n\x9b") == "a\\x1b[31m\\u202eb\\n\\x9b"
    assert [duration(each) for each in (None, 0, 59_999, 60_000, 86_400_000)] == [
        "",
        "0.000 s",
        "59.999 s",
        "00:01:00",
        "1 d 00:00:00",
    ]
    assert plain([b"\x01", None, (1, 2.5)]) == ["01", None, [1, 2.5]]


def test_causes_are_said_in_words() -> None:
    pytest.importorskip("pyspark")
    from kquorum.cli.commands.audit.answers import cause_text

    assert cause_text("fencing", 2) == "fencing of broker 2"
    assert cause_text("shutdown", None) == "shutdown"
    assert cause_text("leader_request", None) == "asked for by its leader"
    assert cause_text(None, None) == ""
    assert cause_text("other", 2) == ""
    assert cause_text("unknown", None) == "unknown (its creation is not in the log)"


def test_a_source_is_known_by_a_folder_or_by_how_it_begins() -> None:
    pytest.importorskip("pyspark")
    from kquorum.cli.commands.audit.query import named_source

    names = ["reno+kafka/1", "reno+other/1", "x/2"]
    assert [named_source(names, each) for each in ("reno+kafka", "reno+o", "x/2", "2")] == [
        "reno+kafka/1",
        "reno+other/1",
        "x/2",
        "x/2",
    ]
    for unclear in ("reno", "1", ""):
        with pytest.raises(CliError, match="it has reno"):
            named_source(names, unclear)
    with pytest.raises(CliError, match="no log unknown in this audit"):
        named_source(names, "unknown")
