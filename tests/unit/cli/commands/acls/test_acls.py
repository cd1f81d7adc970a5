"""`kquorum acls`, against a broker that keeps the entries."""

import json
from typing import Any

import pytest

from kquorum.cli.main import run
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.administered_cluster import AdministeredCluster

READ, WRITE, CREATE, DESCRIBE = 3, 4, 5, 8
TOPIC, GROUP, CLUSTER = 2, 3, 4
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3


def acls(cluster: AdministeredCluster, verb: str, *options: str) -> int:
    with cluster.served() as node:
        return run(["acls", verb, "-b", node.address, *options])


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_each_principal_host_and_operation_gets_an_entry_on_each_resource() -> None:
    cluster = AdministeredCluster()
    who = ("--allow", "User:a", "--deny", "User:b", "--host", "1.2.3.4", "--operation", "read,Describe")
    assert acls(cluster, "add", *who, "--topic", "x", "--group", "g") == 0
    assert sorted(map(str, cluster.acls)) == sorted(
        str((kind, name, LITERAL, user, "1.2.3.4", operation, permission))
        for kind, name in ((TOPIC, "x"), (GROUP, "g"))
        for user, permission in (("User:a", ALLOW), ("User:b", DENY))
        for operation in (READ, DESCRIBE)
    )


def test_what_producers_and_consumers_need() -> None:
    cluster = AdministeredCluster()
    assert acls(cluster, "add", "--allow", "User:a", "--producer", "--topic", "x", "--prefixed") == 0
    assert {(acl[2], acl[5]) for acl in cluster.acls} == {
        (PREFIXED, each) for each in (WRITE, DESCRIBE, CREATE)
    }
    cluster.acls.clear()
    assert acls(cluster, "add", "--allow", "User:a", "--consumer", "--topic", "x", "--group", "g") == 0
    assert {(acl[0], acl[5]) for acl in cluster.acls} == {(TOPIC, READ), (TOPIC, DESCRIBE), (GROUP, READ)}


def test_an_entry_that_is_there_is_not_sent_again(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster()
    add = ("--allow", "User:a", "--operation", "READ", "--topic", "x")
    assert acls(cluster, "add", *add) == 0
    capsys.readouterr()
    assert acls(cluster, "add", *add, "--operation", "write", "--json") == 0
    assert [(each["operation"], each["change"]) for each in printed(capsys)] == [
        ("READ", "there already"),
        ("WRITE", "added"),
    ]
    assert len(cluster.acls) == 2


def test_a_dry_run_adds_and_removes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster(acls=[(TOPIC, "x", LITERAL, "User:a", "*", READ, ALLOW)])
    assert acls(cluster, "add", "--allow", "User:b", "--operation", "ALL", "--cluster", "--dry-run") == 0
    assert "CLUSTER    kafka-cluster" in capsys.readouterr().out
    assert acls(cluster, "remove", "--all", "--dry-run", "--json") == 0
    assert [each["change"] for each in printed(capsys)] == ["would be removed"]
    assert len(cluster.acls) == 1
    assert cluster.asked("DeleteAclsRequest") == []


def test_only_what_is_named_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    kept = [
        (TOPIC, "y", LITERAL, "User:a", "*", READ, ALLOW),
        (TOPIC, "x", PREFIXED, "User:a", "*", READ, ALLOW),
    ]
    cluster = AdministeredCluster(
        acls=[
            *kept,
            (TOPIC, "x", LITERAL, "User:a", "*", READ, ALLOW),
            (TOPIC, "x", LITERAL, "User:b", "*", READ, DENY),
        ]
    )
    assert acls(cluster, "remove", "--topic", "x", "--json") == 0
    assert [(each["principal"], each["change"]) for each in printed(capsys)] == [
        ("User:a", "removed"),
        ("User:b", "removed"),
    ]
    assert cluster.acls == kept
    assert acls(cluster, "remove", "--topic", "x") == 0


def test_the_list_asks_for_what_applies_and_on_request_for_exact_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = AdministeredCluster(acls=[(TOPIC, "x", LITERAL, "User:a", "*", 9, ALLOW)])
    assert acls(cluster, "list", "--topic", "x", "--principal", "User:a", "--json") == 0
    assert printed(capsys)[0]["operation"] == "CLUSTER_ACTION"
    assert acls(cluster, "list", "--topic", "x", "--exact") == 0
    [asked] = cluster.asked("DescribeAclsRequest")
    assert (asked.pattern_type_filter, asked.principal_filter) == (1, None)


@pytest.mark.parametrize(
    ("verb", "options", "told"),
    [
        ("add", ("--topic", "x", "--operation", "READ"), "--allow or --deny"),
        (
            "add",
            ("--allow", "alice", "--topic", "x", "--operation", "READ"),
            "write TYPE:NAME, as User:alice",
        ),
        ("add", ("--allow", "User:a", "--operation", "READ"), "name resources"),
        ("add", ("--allow", "User:a", "--topic", "x"), "name the operations on TOPIC"),
        ("add", ("--allow", "User:a", "--topic", "x", "--operation", "REED"), "'REED' is none of ALL, READ"),
        ("add", ("--allow", "User:a", "--topic", "x", "--consumer"), "a consumer needs topics and a group"),
        ("add", ("--allow", "User:a", "--group", "x", "--producer"), "a producer needs topics"),
        ("remove", (), "--all"),
        ("remove", ("--topic", "x", "--operation", ""), "it names no operation"),
        ("remove", ("--topic", "x", "--operation", "READ", "--operation", " ,"), "it names no operation"),
        ("remove", ("--all", "--topic", "x"), "--all"),
    ],
)
def test_a_line_that_says_too_little_is_refused(
    verb: str, options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["acls", verb, "-b", "127.0.0.1:1", *options]) == 2
    assert told in capsys.readouterr().err


def test_a_refused_entry_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster(refusals={"User:a": (ErrorCode.cluster_authorization_failed, "no")})
    assert acls(cluster, "add", "--allow", "User:a", "--operation", "READ", "--topic", "x") == 1
    told = capsys.readouterr().err
    assert "ALLOW User:a READ on TOPIC x: no (CLUSTER_AUTHORIZATION_FAILED)" in told


def test_many_entries_go_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquorum.cli.commands.acls.acl_client._AT_ONCE", 4)
    cluster = AdministeredCluster()
    users = [option for index in range(6) for option in ("--allow", f"User:{index}")]
    assert acls(cluster, "add", *users, "--operation", "READ", "--topic", "x") == 0
    assert [len(each.creations) for each in cluster.asked("CreateAclsRequest")] == [4, 2]
    assert len(cluster.acls) == 6
    assert acls(cluster, "remove", "--topic", "x") == 0
    assert [len(each.filters) for each in cluster.asked("DeleteAclsRequest")] == [4, 2]
    assert cluster.acls == []


@pytest.mark.parametrize("name", ["\udcff", "x" * 40_000])
def test_a_text_that_no_request_can_hold_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert acls(AdministeredCluster(), "list", "--topic", name) == 2
    assert "DescribeAcls cannot be written" in capsys.readouterr().err
