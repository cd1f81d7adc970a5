"""`kquorum brokers --check` is for scripts: its exit status says whether all brokers are well."""

import json
from typing import Any

import pytest

from kquorum.cli.commands.brokers import members
from kquorum.cli.commands.brokers.rows import BrokerRow, Members
from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run

ASKED = ["brokers", "--bootstrap-server", "127.0.0.1:1"]


def row(broker_id: int, **changes: Any) -> BrokerRow:
    values = {"host": "h", "port": 9092, "rack": None, "fenced": False, "state": "active", "lag": 0}
    return BrokerRow(broker_id=broker_id, **(values | changes))


def told(monkeypatch: pytest.MonkeyPatch, *rows: BrokerRow) -> None:
    async def ask_members(*_arguments: Any, **_options: Any) -> Members:
        return Members(cluster_id="c", committed_offset=9, brokers=rows)

    monkeypatch.setattr(members, "ask_members", ask_members)


def test_where_all_are_well_the_status_is_0(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, row(1), row(2, lag=1000))
    assert run([*ASKED, "--check"]) == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (row(2, state="fenced", fenced=True), "broker 2 is fenced"),
        (row(2, lag=1001), "broker 2 is 1,001 records behind"),
        (row(2, says="cut off"), "broker 2: cut off"),
    ],
)
def test_what_is_wrong_is_said_and_is_a_failure_only_to_who_checks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: BrokerRow, words: str
) -> None:
    told(monkeypatch, row(1), wrong)
    assert run(ASKED) == 0
    capsys.readouterr()
    assert run([*ASKED, "--check", "--json"]) == ExitStatus.FAILED
    shown = capsys.readouterr()
    assert len(json.loads(shown.out)["brokers"]) == 2
    assert words in shown.err
