"""`kquorum quotas`, against a broker that keeps them."""

import json

import pytest

from kquorum.cli.main import run
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.administered_cluster import AdministeredCluster

ALICE = (("user", "alice"),)


def quotas(cluster: AdministeredCluster, verb: str, *options: str) -> int:
    with cluster.served() as node:
        return run(["quotas", verb, *options, "-b", node.address])


def test_quotas_are_set_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster()
    assert (
        quotas(cluster, "set", "producer_byte_rate=1024", "request_percentage=12.5", "--user", "alice") == 0
    )
    assert quotas(cluster, "set", "consumer_byte_rate=7", "--user", "alice", "--default-client-id") == 0
    assert cluster.quotas == {
        ALICE: {"producer_byte_rate": 1024.0, "request_percentage": 12.5},
        (("user", "alice"), ("client-id", None)): {"consumer_byte_rate": 7.0},
    }
    capsys.readouterr()
    assert quotas(cluster, "list") == 0
    told = capsys.readouterr().out
    assert "1,024" in told
    assert "12.5" in told
    assert "user alice, client-id <default>" in told
    assert quotas(cluster, "list", "--user", "bob", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_remove_takes_those_named_or_all_of_exactly_this_entity(capsys: pytest.CaptureFixture[str]) -> None:
    other = (("user", "alice"), ("client-id", "c"))
    cluster = AdministeredCluster(
        quotas={
            ALICE: {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0},
            other: {"producer_byte_rate": 3.0},
        }
    )
    assert quotas(cluster, "remove", "producer_byte_rate", "--user", "alice") == 0
    assert cluster.quotas[ALICE] == {"consumer_byte_rate": 2.0}
    assert quotas(cluster, "remove", "--user", "alice", "--dry-run") == 0
    assert ALICE in cluster.quotas
    assert quotas(cluster, "remove", "--user", "alice") == 0
    assert list(cluster.quotas) == [other]
    assert quotas(cluster, "remove", "--user", "alice") == 0
    assert "user alice has no such quota" in capsys.readouterr().out


def test_a_dry_run_lets_the_controller_check() -> None:
    cluster = AdministeredCluster()
    assert quotas(cluster, "set", "producer_byte_rate=1", "--default-user", "--dry-run") == 0
    assert [each.validate_only for each in cluster.asked("AlterClientQuotasRequest")] == [True]
    assert cluster.quotas == {}


def test_a_refusal_names_the_entity(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster(refusals={ALICE: (ErrorCode.invalid_request, "no")})
    assert quotas(cluster, "set", "producer_byte_rate=1", "--user", "alice") == 1
    assert "quotas of user alice were not altered: no (INVALID_REQUEST)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("producer_byte_rate=1",), "whose quotas?"),
        (("producer_byte_rat=1", "--user", "a"), "did you mean producer_byte_rate?"),
        (("producer_byte_rate=-1", "--user", "a"), "'-1' is no positive number"),
        (("producer_byte_rate=nan", "--user", "a"), "'nan' is no positive number"),
        (("producer_byte_rate", "--user", "a"), "is not KEY=VALUE"),
        (("producer_byte_rate=1", "--user", "a", "--default-user"), "exclude each other"),
        (("producer_byte_rate=1", "--user", "a", "--ip", "1.1.1.1"), "of the address alone"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused(
    options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["quotas", "set", "-b", "127.0.0.1:1", *options]) == 2
    assert told in capsys.readouterr().err
