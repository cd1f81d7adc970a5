"""`kquorum log-dirs`, against a broker with two directories."""

import json

import pytest

from kquorum.cli.clients.log_dirs_client import LogDirectory
from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.administered_cluster import AdministeredCluster

ORDERS = ("orders", 0)


def cluster() -> AdministeredCluster:
    return AdministeredCluster(
        brokers={11: None}, replicas={ORDERS: (11,)}, sizes={ORDERS: 70, ("x-1", 2): 30}
    )


def log_dirs(served: AdministeredCluster, verb: str, *options: str) -> int:
    with served.served() as node:
        return run(["log-dirs", verb, *options, "-b", node.address])


def test_directories_are_shown_with_size_and_space(capsys: pytest.CaptureFixture[str]) -> None:
    assert log_dirs(cluster(), "list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["path"], each["size_bytes"], each["usable_bytes"]) for each in found] == [
        ("/disk1", 100, 400),
        ("/disk2", 0, 400),
    ]
    assert log_dirs(cluster(), "list") == 0
    assert "2 directories" in capsys.readouterr().out


def test_replicas_of_a_topic_are_shown_where_they_lie(capsys: pytest.CaptureFixture[str]) -> None:
    assert log_dirs(cluster(), "list", "--replicas") == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split() for line in told if "/disk" in line] == [
        ["orders", "0", "11", "/disk1", "70", "0"],
        ["x-1", "2", "11", "/disk1", "30", "0"],
    ]


def test_a_replica_moves_to_another_directory(capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    assert (
        log_dirs(served, "move", "orders-0", "x-1-2", "--broker", "11", "--to", "/disk2/", "--dry-run") == 0
    )
    assert served.directories == {}
    assert log_dirs(served, "move", "orders-0", "x-1-2", "--broker", "11", "--to", "/disk2/") == 0
    assert served.directories == {ORDERS: "/disk2", ("x-1", 2): "/disk2"}
    assert "orders-0, x-1-2 of broker 11 move to /disk2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (("orders-0", "--broker", "11", "--to", "/nowhere"), 1, "it has /disk1, /disk2"),
        (("orders-9", "--broker", "11", "--to", "/disk2"), 1, "no replica of orders-9"),
        (("orders-0", "--broker", "12", "--to", "/disk2"), 1, "live brokers: 11"),
        (("orders", "--broker", "11", "--to", "/disk2"), 2, "write TOPIC-NUMBER"),
    ],
)
def test_what_cannot_move_is_refused(
    options: tuple[str, ...], status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    served = cluster()
    assert log_dirs(served, "move", *options) == status
    assert told in capsys.readouterr().err
    assert served.directories == {}


def test_a_refusal_of_the_broker_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    served = cluster()
    served.refusals[ORDERS] = (ErrorCode.kafka_storage_error, "")
    assert log_dirs(served, "move", "orders-0", "--broker", "11", "--to", "/disk2") == 1
    assert "orders-0 on broker 11: KAFKA_STORAGE_ERROR" in capsys.readouterr().err


def test_a_broker_that_does_not_tell_fails_the_list_of_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(*_: object) -> tuple[list[LogDirectory], dict[int, CliError]]:
        told = LogDirectory(
            broker_id=11,
            path="/disk1",
            total_bytes=None,
            usable_bytes=None,
            is_cordoned=False,
            fault=None,
            replicas=(),
        )
        return [told], {12: CliError("broker 12 is away")}

    monkeypatch.setattr("kquorum.cli.clients.log_dirs_client.find_log_dirs", find)
    assert log_dirs(cluster(), "list", "--json") == 1
    printed = capsys.readouterr()
    assert [each["path"] for each in json.loads(printed.out)] == ["/disk1"]
    assert "broker 12 is away" in printed.err
