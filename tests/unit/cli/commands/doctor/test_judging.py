"""What `kquorum doctor` makes of what it knows: each fault is found, and a cluster that is well has no finding."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kquorum.cli.commands.doctor.facts import (
    Broker,
    Certificate,
    ClusterFacts,
    Node,
    Partition,
    Quorum,
    Replica,
    Space,
)
from kquorum.cli.commands.doctor.findings import Check, Finding, Report, Severity
from kquorum.cli.commands.doctor.judging import judge

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
SPACE = Space(path="/data", total_bytes=10**12, usable_bytes=6 * 10**11, total_inodes=1000, usable_inodes=900)


def node(node_id: int, role: str, **changed: Any) -> Node:
    values: dict[str, Any] = {
        "node_id": node_id,
        "roles": (role,),
        "address": f"host:{node_id}",
        "cluster_id": "c",
        "version": "1",
        "clock_ms": 3,
        "clock_error_ms": 2,
        "open_files": 100,
        "max_open_files": 65_536,
        "spaces": (SPACE,),
    }
    return Node(**(values | changed))


NODES = (
    node(1, "controller"),
    node(2, "controller"),
    node(3, "controller"),
    node(11, "broker"),
    node(12, "broker"),
)
REPLICAS = tuple(
    Replica(node_id=each.node_id, is_voter=each.node_id < 10, alive=True, lag=0) for each in NODES
)
WELL = ClusterFacts(
    now_ms=NOW_MS,
    config="quorum.toml",
    cluster_id="c",
    nodes=NODES,
    quorum=Quorum(leader_id=1, replicas=REPLICAS),
    supported={"node 1": {"metadata.version": (7, 25)}, "node 2": {"metadata.version": (7, 25)}},
    finalized={"metadata.version": 25},
    brokers=[Broker(broker_id=11, state="active", lag=0), Broker(broker_id=12, state="active", lag=0)],
    partitions=[Partition(name="orders-0", leader=11, replicas=(11, 12), isr=(11, 12), min_isr=2)],
    certificates=(Certificate(place="node.pem", ends_ms=NOW_MS + 90 * DAY_MS),),
)


def found_in(facts: ClusterFacts) -> list[Finding]:
    report = Report()
    judge(facts, report)
    return list(report.in_order)


def with_node(node_id: int, **changed: Any) -> ClusterFacts:
    return replace(
        WELL, nodes=tuple(replace(each, **changed) if each.node_id == node_id else each for each in NODES)
    )


def with_space(**changed: Any) -> ClusterFacts:
    return with_node(11, spaces=(replace(SPACE, **changed),))


def with_replicas(change: Callable[[Replica], Mapping[str, Any]]) -> ClusterFacts:
    changed = tuple(replace(each, **change(each)) for each in REPLICAS)
    return replace(WELL, quorum=Quorum(leader_id=1, replicas=changed))


def with_partition(**changed: Any) -> ClusterFacts:
    assert WELL.partitions is not None
    return replace(WELL, partitions=[replace(WELL.partitions[0], **changed)])


def test_a_cluster_that_is_well_has_no_finding_and_everything_was_checked() -> None:
    report = Report()
    judge(WELL, report)
    assert report.findings == []
    assert report.skipped == {}
    assert set(report.done) == set(Check) - {Check.CONFIG, Check.FOLDERS}


FAULTS: list[tuple[ClusterFacts, Check, Severity, str, str]] = [
    (
        with_node(2, silence="connection refused"),
        Check.NODES,
        Severity.PROBLEM,
        "node 2",
        "`kquorum start -c quorum.toml --node 2`",
    ),
    (with_node(2, cluster_id="other"), Check.NODES, Severity.PROBLEM, "node 2", "correct the address host:2"),
    (with_node(11, not_ready="starting"), Check.NODES, Severity.PROBLEM, "node 11", "kquorum.log"),
    (
        replace(WELL, quorum=None, quorum_fault="no answer"),
        Check.QUORUM,
        Severity.PROBLEM,
        "quorum",
        "`kquorum quorum status -c quorum.toml`",
    ),
    (
        with_replicas(lambda each: {"alive": each.node_id != 3}),
        Check.QUORUM,
        Severity.PROBLEM,
        "quorum",
        "start the voters that are away: 3",
    ),
    (
        with_replicas(lambda each: {"lag": 5_000 if each.node_id == 2 else 0}),
        Check.QUORUM,
        Severity.WARNING,
        "node 2",
        "kquorum quorum status",
    ),
    (with_node(3, clock_ms=5_000), Check.CLOCKS, Severity.WARNING, "node 3", "timedatectl"),
    (with_node(3, clock_ms=-40_000), Check.CLOCKS, Severity.PROBLEM, "node 3", "timedatectl"),
    (with_node(12, version="2"), Check.VERSIONS, Severity.WARNING, "nodes", "kquorum may upgrade"),
    (
        replace(
            WELL, supported={"node 1": {"metadata.version": (7, 24)}, "node 2": {"metadata.version": (7, 25)}}
        ),
        Check.VERSIONS,
        Severity.PROBLEM,
        "node 1",
        "upgrade these nodes",
    ),
    (
        replace(WELL, brokers=[Broker(broker_id=11, state="fenced", lag=None), WELL.brokers[1]]),  # type: ignore[index]
        Check.BROKERS,
        Severity.PROBLEM,
        "broker 11",
        "`kquorum brokers unregister 11`",
    ),
    (
        replace(WELL, brokers=[Broker(broker_id=11, state="active", lag=9_999), WELL.brokers[1]]),  # type: ignore[index]
        Check.BROKERS,
        Severity.WARNING,
        "broker 11",
        "kquorum brokers -c quorum.toml",
    ),
    (
        replace(WELL, brokers=WELL.brokers[:1]),  # type: ignore[index]
        Check.BROKERS,
        Severity.PROBLEM,
        "broker 12",
        "`kquorum start -c quorum.toml --node 12`",
    ),
    (
        with_partition(leader=-1, isr=(11,)),
        Check.PARTITIONS,
        Severity.PROBLEM,
        "orders-0",
        "start their brokers: 11 12",
    ),
    (with_partition(isr=(11,)), Check.PARTITIONS, Severity.PROBLEM, "orders-0", "not in sync: 12"),
    (with_partition(isr=(11,), min_isr=1), Check.PARTITIONS, Severity.WARNING, "orders-0", "brokers 12"),
    (
        with_partition(isr=(11,), replicas=(11,), min_isr=1),
        Check.PARTITIONS,
        Severity.NOTE,
        "orders-0",
        "--replication-factor",
    ),
    (
        with_replicas(lambda each: {"state_differs_at": 77 if each.node_id == 12 else None}),
        Check.STATE,
        Severity.PROBLEM,
        "node 12",
        "kquorum log state-hash",
    ),
    (with_space(usable_bytes=10**11), Check.DISKS, Severity.WARNING, "node 11: /data", "retention.ms"),
    (with_space(usable_bytes=10**10), Check.DISKS, Severity.PROBLEM, "node 11: /data", "retention.ms"),
    (
        with_space(written_per_day=3 * 10**11),
        Check.DISKS,
        Severity.WARNING,
        "node 11: /data",
        "kquorum log-dirs",
    ),
    (with_space(written_per_day=10**13), Check.DISKS, Severity.PROBLEM, "node 11: /data", "kquorum log-dirs"),
    (with_space(usable_inodes=80), Check.DISKS, Severity.WARNING, "node 11: /data", "segment.bytes"),
    (with_space(usable_inodes=8), Check.DISKS, Severity.PROBLEM, "node 11: /data", "segment.bytes"),
    (with_space(fault="Input/output error"), Check.DISKS, Severity.PROBLEM, "node 11: /data", "dmesg"),
    (
        with_node(2, open_files=800, max_open_files=1_000),
        Check.DESCRIPTORS,
        Severity.WARNING,
        "node 2",
        "LimitNOFILE",
    ),
    (
        with_node(2, open_files=990, max_open_files=1_000),
        Check.DESCRIPTORS,
        Severity.PROBLEM,
        "node 2",
        "LimitNOFILE",
    ),
    (with_node(2, max_open_files=1_024), Check.DESCRIPTORS, Severity.WARNING, "node 2", "LimitNOFILE"),
    *(
        (
            replace(WELL, certificates=(Certificate(place="n.pem", ends_ms=NOW_MS + days * DAY_MS),)),
            Check.CERTIFICATES,
            severity,
            "n.pem",
            "replace it",
        )
        for days, severity in ((20, Severity.WARNING), (2, Severity.PROBLEM), (-9, Severity.PROBLEM))
    ),
    (
        replace(WELL, certificates=(Certificate(place="n.pem", fault="no"),)),
        Check.CERTIFICATES,
        Severity.WARNING,
        "n.pem",
        "see the file",
    ),
]


@pytest.mark.parametrize(
    ("facts", "check", "severity", "place", "remedy"),
    FAULTS,
    ids=[f"{each[1]}-{number}" for number, each in enumerate(FAULTS)],
)
def test_each_fault_is_found_where_it_is(
    facts: ClusterFacts, check: Check, severity: Severity, place: str, remedy: str
) -> None:
    found = [each for each in found_in(facts) if each.check is check]
    assert (severity, place) in [(each.severity, each.place) for each in found], found
    assert any(remedy in each.remedy for each in found), found
    assert all(each.remedy for each in found_in(facts))


@pytest.mark.parametrize("places", [(3, 3, 3), (0, 900, 900)])
def test_clocks_that_may_agree_are_no_finding(places: tuple[int, int, int]) -> None:
    nodes = tuple(node(index, "controller", clock_ms=each) for index, each in enumerate(places))
    assert found_in(replace(WELL, nodes=(*nodes, *NODES[3:]))) == []


def test_the_error_of_a_slow_answer_is_taken_off() -> None:
    assert found_in(with_node(3, clock_ms=5_000, clock_error_ms=4_500)) == []


def test_a_partition_has_its_worst_finding_only() -> None:
    found = found_in(with_partition(leader=-1, isr=()))
    assert [each.severity for each in found if each.check is Check.PARTITIONS] == [Severity.PROBLEM]


def test_a_topic_may_have_fewer_replicas_than_min_insync() -> None:
    assert [each.severity for each in found_in(with_partition(replicas=(11,), isr=(11,), min_isr=2))] == [
        Severity.NOTE
    ]


def test_many_partitions_are_counted_and_some_named() -> None:
    many = [
        Partition(name=f"t-{index}", leader=-1, replicas=(11,), isr=(), min_isr=1) for index in range(5_000)
    ]
    [found] = [each for each in found_in(replace(WELL, partitions=many)) if each.check is Check.PARTITIONS]
    assert found.place == "t-0, t-1, t-2, t-3, t-4 and 4,995 more"
    assert found.found.startswith("5,000 partitions")


def test_a_silent_node_has_one_finding_not_a_second_as_a_replica() -> None:
    silent = replace(
        with_node(3, silence="no answer"),
        quorum=with_replicas(lambda each: {"alive": each.node_id != 3}).quorum,
    )
    assert [(each.check, each.place) for each in found_in(silent)] == [
        (Check.NODES, "node 3"),
        (Check.QUORUM, "quorum"),
    ]


def test_what_could_not_be_looked_at_is_said() -> None:
    bare = tuple(
        Node(node_id=each.node_id, roles=each.roles, address=each.address, silence="no answer")
        for each in NODES
    )
    facts = ClusterFacts(
        now_ms=NOW_MS,
        config="quorum.toml",
        cluster_id="c",
        nodes=bare,
        quorum_fault="no answer",
        brokers_fault="no broker",
        partitions_fault="no broker",
    )
    report = Report()
    judge(facts, report)
    assert set(report.skipped) == set(Check) - {Check.CONFIG, Check.FOLDERS, Check.NODES, Check.QUORUM}
    assert report.worst is Severity.PROBLEM
