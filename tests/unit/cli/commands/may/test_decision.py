"""What `kquorum may` decides of a view, and how it says so."""

import json
from dataclasses import replace

import pytest

from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag, ReplicaState
from kquorum.cli.commands.may.action import Action
from kquorum.cli.commands.may.collecting import view_of
from kquorum.cli.commands.may.decision import (
    BrokerView,
    ClusterView,
    PartitionView,
    Verdict,
    VoterView,
    Why,
    decide,
)
from kquorum.cli.commands.may.showing import show_verdict
from kquorum.cli.commands.quorum.voter_checks import ObservedQuorum
from kquorum.cli.failures import CliError
from kquorum.wire.proto import inspect_pb2 as pb


def voter(node_id: int, *, alive: bool = True, has_all: bool = True, differs: bool = False) -> VoterView:
    return VoterView(node_id=node_id, is_alive=alive, has_all=has_all, differs=differs)


def broker(broker_id: int, *, fenced: bool = False, leaving: bool = False, alive: bool = True) -> BrokerView:
    return BrokerView(broker_id=broker_id, fenced=fenced, in_controlled_shutdown=leaving, is_alive=alive)


def partition(
    leader: int = 101,
    replicas: tuple[int, ...] = (101, 102, 103),
    isr: tuple[int, ...] | None = None,
    *,
    min_isr: int = 2,
    elr: tuple[int, ...] = (),
    last_known_elr: tuple[int, ...] = (),
    adding: tuple[int, ...] = (),
) -> PartitionView:
    return PartitionView(
        topic="orders",
        partition_id=0,
        leader=leader,
        replicas=replicas,
        isr=replicas if isr is None else isr,
        min_isr=min_isr,
        elr=elr,
        last_known_elr=last_known_elr,
        adding=adding,
    )


def cluster(
    *partitions: PartitionView,
    voters: tuple[VoterView, ...] = (voter(1), voter(2), voter(3)),
    brokers: tuple[BrokerView, ...] = (broker(101), broker(102), broker(103)),
    commits: bool = True,
    is_dynamic: bool = True,
) -> ClusterView:
    return ClusterView(
        leader_id=1,
        leader_epoch=7,
        commits=commits,
        is_dynamic=is_dynamic,
        voters=voters,
        other_controllers=frozenset({4}),
        brokers={each.broker_id: each for each in brokers},
        partitions=partitions or (partition(),),
    )


def whys(view: ClusterView, action: Action, *nodes: int) -> list[Why]:
    return [reason.why for reason in decide(view, action, nodes).reasons]


@pytest.mark.parametrize("action", [each for each in Action if each is not Action.REMOVE])
@pytest.mark.parametrize("node", [1, 2, 4, 101, 102])
def test_one_node_of_a_whole_cluster_may_go_for_a_while(action: Action, node: int) -> None:
    assert whys(cluster(), action, node) == []


@pytest.mark.parametrize("node", [1, 2, 4])
def test_one_controller_of_a_whole_dynamic_quorum_may_be_removed(node: int) -> None:
    assert whys(cluster(), Action.REMOVE, node) == []


@pytest.mark.parametrize(
    ("voters", "nodes", "is_yes"),
    [
        ((voter(1), voter(2), voter(3)), (2, 3), False),
        ((voter(1), voter(2)), (2,), False),
        ((voter(1),), (1,), False),
        ((voter(1), voter(2), voter(3, alive=False)), (2,), False),
        ((voter(1), voter(2), voter(3, alive=False)), (3,), True),
        ((voter(1), voter(2), voter(3, has_all=False)), (2,), False),
        ((voter(1), voter(2), voter(3), voter(4), voter(5)), (2, 3), True),
        ((voter(1), voter(2), voter(3), voter(4, has_all=False), voter(5)), (2, 3), False),
    ],
)
def test_a_majority_of_caught_up_voters_must_stay(
    voters: tuple[VoterView, ...], nodes: tuple[int, ...], is_yes: bool
) -> None:
    for action in (Action.STOP, Action.FORMAT):
        assert whys(cluster(voters=voters), action, *nodes) == ([] if is_yes else [Why.MAJORITY])


def test_a_rolling_change_takes_one_node_at_a_time() -> None:
    verdict = decide(cluster(), Action.RESTART, (101, 1, 3, 2, 102))
    assert verdict.is_yes
    assert verdict.order == (2, 3, 1, 101, 102)  # the leader is the last of the controllers
    assert decide(cluster(), Action.STOP, (1, 101)).order == (101, 1)  # its shutdown needs a controller


def test_a_voter_is_removed_only_from_a_dynamic_quorum_and_alone() -> None:
    assert whys(cluster(is_dynamic=False), Action.REMOVE, 2) == [Why.STATIC_VOTER]
    assert whys(cluster(), Action.REMOVE, 2, 3) == [Why.ONE_VOTER_AT_A_TIME]
    assert whys(cluster(voters=(voter(1), voter(2))), Action.REMOVE, 1) == [Why.LEADER_OF_TWO]
    assert whys(cluster(voters=(voter(1), voter(2))), Action.REMOVE, 2) == []
    assert whys(cluster(voters=(voter(1),)), Action.REMOVE, 1) == [Why.MAJORITY]
    two_dead = (voter(1), voter(2), voter(3, alive=False), voter(4, alive=False))
    assert whys(cluster(voters=two_dead), Action.REMOVE, 2) == [Why.MAJORITY]
    assert whys(cluster(voters=two_dead), Action.REMOVE, 3) == []  # the two others are a majority of three


def test_a_quorum_that_does_not_commit_or_differs_is_left_alone() -> None:
    assert whys(cluster(commits=False), Action.STOP, 101) == [Why.NO_COMMITS]
    voters = (voter(1), voter(2), voter(3, differs=True))
    assert whys(cluster(voters=voters), Action.STOP, 2) == [Why.STATE_DIFFERS, Why.MAJORITY]


def test_an_unknown_node_is_named() -> None:
    (reason,) = decide(cluster(), Action.STOP, (9,)).reasons
    assert (reason.why, reason.may_pass_later) == (Why.UNKNOWN_NODE, False)
    assert "node 9" in reason.detail


@pytest.mark.parametrize(
    ("state", "node", "why"),
    [
        (partition(replicas=(101,), min_isr=1), 101, Why.NO_LEADER_LEFT),
        (partition(isr=(101,), min_isr=1), 101, Why.NO_LEADER_LEFT),
        (partition(isr=(101, 102)), 102, Why.BELOW_MIN_ISR),
        (partition(isr=(101, 102)), 103, None),
        (partition(isr=(101,)), 103, Why.UNDER_MIN_ISR),
        (partition(leader=-1, isr=(101,)), 102, Why.LEADERLESS),
        (partition(leader=-1, isr=(), elr=(103,)), 103, Why.LEADERLESS),
        (partition(adding=(103,)), 102, Why.REASSIGNMENT),
        (partition(replicas=(101, 102), min_isr=3), 102, Why.BELOW_MIN_ISR),
        (partition(replicas=(102, 103), leader=102), 101, None),
    ],
)
def test_what_a_partition_has_against_it(state: PartitionView, node: int, why: Why | None) -> None:
    for action in (Action.STOP, Action.RESTART, Action.UPGRADE):
        assert whys(cluster(state), action, node) == ([] if why is None else [why])


def test_two_brokers_are_judged_together_when_they_stop_and_alone_when_they_restart() -> None:
    view = cluster(partition(min_isr=2))
    assert whys(view, Action.STOP, 102, 103) == [Why.BELOW_MIN_ISR]
    assert whys(view, Action.RESTART, 102, 103) == []


@pytest.mark.parametrize(
    "ill", [broker(103, alive=False), broker(103, fenced=True), broker(103, leaving=True)]
)
def test_a_broker_that_has_died_and_is_still_in_the_isr_does_not_count(ill: BrokerView) -> None:
    view = cluster(partition(), brokers=(broker(101), broker(102), ill))
    assert whys(view, Action.STOP, 102) == [Why.BELOW_MIN_ISR]
    assert whys(view, Action.UPGRADE, 102) == [Why.OTHERS_NOT_WELL, Why.BELOW_MIN_ISR]
    led = cluster(partition(leader=103), brokers=(broker(101), broker(102), ill))
    assert whys(led, Action.STOP, 102) == [Why.LEADER_SILENT]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (partition(isr=(102,), leader=102, min_isr=1), Why.LAST_COPY),
        (partition(leader=-1, isr=(102,)), Why.LAST_COPY),
        (partition(leader=-1, isr=(), elr=(102,)), Why.LAST_COPY),
        (partition(leader=-1, isr=(), last_known_elr=(102,)), Why.LAST_COPY),
        (partition(leader=-1, isr=(101,)), Why.LEADERLESS),
        (partition(min_isr=1, isr=(101, 102)), None),
    ],
)
def test_the_last_copy_is_not_formatted(state: PartitionView, why: Why | None) -> None:
    verdict = decide(cluster(state), Action.FORMAT, (102,), may_be_offline=("orders",))
    expected = [] if why in (None, Why.LEADERLESS) else [why]
    assert [reason.why for reason in verdict.reasons] == expected
    assert whys(cluster(state), Action.FORMAT, 102) == ([] if why is None else [why])


def test_a_broker_with_replicas_is_not_removed() -> None:
    assert whys(cluster(), Action.REMOVE, 103) == [Why.HAS_REPLICAS]
    elsewhere = partition(replicas=(101, 102))
    assert whys(cluster(elsewhere), Action.REMOVE, 103) == []


def test_the_last_broker_stays() -> None:
    view = cluster(
        partition(replicas=(102,), leader=102, min_isr=1), brokers=(broker(101), broker(102, alive=False))
    )
    assert whys(view, Action.STOP, 101) == [Why.LAST_BROKER]


def test_a_topic_may_be_given_up_for_a_while() -> None:
    view = cluster(partition(replicas=(101,), min_isr=1))
    assert decide(view, Action.STOP, (101,), may_be_offline=("orders",)).is_yes
    assert not decide(view, Action.STOP, (101,), may_be_offline=("others",)).is_yes


def test_a_yes_says_what_must_not_fail_meanwhile() -> None:
    risks = decide(cluster(partition(min_isr=2)), Action.STOP, (1,)).risks
    assert any("bears no further failure: nodes 2, 3 must stay" in risk for risk in risks)
    assert any("node 1 leads the quorum" in risk for risk in risks)
    assert any("1 partition" in risk for risk in decide(cluster(), Action.STOP, (102,)).risks)


# What it prints


def verdict(*nodes: int, **changes: object) -> Verdict:
    return decide(replace(cluster(), **changes), Action.STOP, nodes)  # type: ignore[arg-type]


def test_a_yes_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdict(verdict(2, 101), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "yes: stop 2 101"
    assert lines[-1] == "  101 2, in this order"


def test_a_no_fails_with_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CliError, match=r"no: stop 2 3 \(majority\)"):
        show_verdict(verdict(2, 3), as_json=False)
    assert "node 1 would be left to vote; 2 of 3 are needed" in capsys.readouterr().out


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdict(verdict(2), as_json=True)
    assert json.loads(capsys.readouterr().out)["answer"] == "yes"
    with pytest.raises(CliError):
        show_verdict(verdict(101, partitions=[partition(replicas=(101,))]), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == "no"
    assert told["reasons"][0]["why"] == "no leader left"
    assert told["reasons"][0]["partitions"] == ["orders-0"]


# How the view comes about


def replica(node_id: int, *, end: int, fetched_ms: int, differs_at: int | None = None) -> ReplicaLag:
    state = ReplicaState(offset=9, hash="ab", differs_at=differs_at)
    return ReplicaLag(
        replica_id=node_id,
        directory_id=None,
        log_end_offset=end,
        lag=0,
        last_fetch_timestamp_ms=fetched_ms,
        last_caught_up_timestamp_ms=None,
        state=state,
    )


def looked(*replicas: ReplicaLag, high_watermark: int, first: ObservedQuorum | None = None) -> ObservedQuorum:
    status = QuorumStatus(
        leader_id=1,
        leader_epoch=7,
        high_watermark=high_watermark,
        voters=tuple(each for each in replicas if each.replica_id < 100),
        observers=tuple(each for each in replicas if each.replica_id >= 100),
    )
    before = () if first is None else (*first.status.voters, *first.status.observers)
    fetched = {(each.replica_id, each.directory_id): each.last_fetch_timestamp_ms for each in before}
    return ObservedQuorum(status=status, now_ms=0, fetched_before=fetched)


FIRST = looked(
    replica(1, end=100, fetched_ms=5),
    replica(2, end=100, fetched_ms=5),
    replica(3, end=90, fetched_ms=5),
    replica(101, end=100, fetched_ms=5),
    replica(102, end=100, fetched_ms=5),
    high_watermark=100,
)


def test_who_has_fetched_in_between_is_alive_and_who_has_reached_the_end_of_then_has_all() -> None:
    second = looked(
        replica(1, end=120, fetched_ms=9),
        replica(2, end=100, fetched_ms=5),
        replica(3, end=99, fetched_ms=9),
        replica(101, end=120, fetched_ms=9),
        replica(102, end=100, fetched_ms=5),
        high_watermark=99,
        first=FIRST,
    )
    brokers = [pb.Broker(id=101), pb.Broker(id=102, fenced=True)]
    header = pb.ImageHeader(brokers=brokers, controllers=[pb.Controller(id=1), pb.Controller(id=4)])
    found = view_of(FIRST, second, [pb.ImageChunk(header=header)])
    assert not found.commits
    assert [(each.node_id, each.is_alive, each.has_all) for each in found.voters] == [
        (1, True, True),
        (2, False, True),
        (3, True, False),
    ]
    assert found.serving() == {101}
    assert not found.brokers[102].is_alive
    assert found.other_controllers == {4}


def test_everything_of_then_is_committed_and_a_voter_differs() -> None:
    second = looked(
        replica(1, end=120, fetched_ms=9),
        replica(2, end=120, fetched_ms=9, differs_at=80),
        replica(3, end=100, fetched_ms=9),
        high_watermark=100,
        first=FIRST,
    )
    found = view_of(FIRST, second, [pb.ImageChunk(header=pb.ImageHeader())])
    assert found.commits
    assert [each.counts for each in found.voters] == [True, False, True]


def test_voters_that_change_meanwhile_are_no_commit() -> None:
    second = looked(replica(1, end=120, fetched_ms=9), high_watermark=120, first=FIRST)
    assert not view_of(FIRST, second, [pb.ImageChunk(header=pb.ImageHeader())]).commits


def chunk_of(minimum: int) -> pb.ImageChunk:
    partition = pb.Partition(
        partition_id=3, leader=101, replicas=[101, 102], isr=[101], eligible_leader_replicas=[102]
    )
    topic = pb.Topic(name="orders", id="x", partitions=[partition], min_insync_replicas=minimum)
    return pb.ImageChunk(topics=pb.TopicChunk(topics=[topic]))


def test_partitions_come_with_the_minimum_of_their_topic() -> None:
    header = pb.ImageChunk(header=pb.ImageHeader())
    (found,) = view_of(FIRST, FIRST, [header, chunk_of(2)]).partitions
    assert (found.name, found.min_isr, found.elr) == ("orders-3", 2, (102,))


def test_an_older_leader_does_not_tell_enough() -> None:
    header = pb.ImageChunk(header=pb.ImageHeader())
    with pytest.raises(CliError, match="older than this command's"):
        view_of(FIRST, FIRST, [header, chunk_of(0)])
