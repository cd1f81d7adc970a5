"""Each figure is read off where it is kept: all that this node knows differs from all else that it knows."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kquorum.broker.lifecycle_states import BrokerState
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.network.limits import ServerCounters
from kquorum.node.observability.figures import NodeFigures
from kquorum.node.observability.gather import figures_of
from kquorum.node.observability.latency import LatencyMeter
from kquorum.raft.roles import Candidate, Follower, Leader, Unattached
from kquorum.raft.voters import ReplicaKey
from tests.support.images import broker_record, image_of
from tests.support.node.figures import FRESH, NOW_MS

Some = SimpleNamespace
KNOWN_VOTERS = {2}
APPLIED = {1: 61, 3: 63}


def meter(*latencies_ms: int) -> LatencyMeter:
    found = LatencyMeter()
    for latency_ms in latencies_ms:
        found.record(NOW_MS, latency_ms)
    return found


def image_at(offset: int) -> MetadataImage:
    image = image_of(*(broker_record(number) for number in (1, 2, 3)))
    return replace(image, provenance=Provenance(last_contained_offset=offset))


class Voters:
    ids = (1, 2, 3, 4)

    def __len__(self) -> int:
        return len(self.ids)


def replica(role: Any, *, voted: int | None = 9, is_voter: bool = True) -> Any:
    return Some(
        role=role,
        is_voter=is_voter,
        state=Some(voted=None if voted is None else ReplicaKey(voted)),
        key=ReplicaKey(5),
        leader_id=11,
        epoch=12,
        high_watermark=13,
        voters=Voters(),
        log=Some(last_epoch=14, newest_snapshot=Some(offset=15)),
    )


class Controller:
    is_active = True
    image = image_at(31)
    committed_image = image_at(32)

    def contact_of(self, broker_id: int) -> Any:
        return Some(metadata_offset=APPLIED[broker_id]) if broker_id in APPLIED else None


def gathered(its_replica: Any) -> NodeFigures:
    member = Some(
        cluster_id="c",
        node=Some(replica=its_replica),
        log=Some(log_start_offset=21, end_offset=22),
        driver=Some(endpoint_of=lambda voter_id: object() if voter_id in KNOWN_VOTERS else None),
        election_meter=Some(latency=meter(40)),
        leaders_seen=23,
        snapshots_loaded=24,
    )
    counters = ServerCounters()
    counters.requests, counters.open_connections = 71, 72
    lifecycle = Some(state=BrokerState.RECOVERY, broker_epoch=51, is_fenced=True, previous_session_ends_ms=54)
    node: Any = Some(
        config=Some(node_id=5, process_roles=("controller", "broker")),
        member=member,
        clock=Some(now_ms=lambda: NOW_MS),
        commits=Some(freshness=lambda: FRESH),
        commit_latency=meter(6, 10),
        controller=Some(controller=Controller(), fault_count=33, request_times=Some(by_kind={"of": 1})),
        broker=Some(
            lifecycle=lifecycle,
            offline_log_dirs=52,
            throttled_replication=lambda now_ms: {"leaderreplication": now_ms},
            group_figures=lambda: "groups",
            transaction_figures=lambda: "transactions",
            data_figures=lambda: "data",
            request_times=Some(by_kind={"of": 2}),
            quotas=Some(figures=lambda now_ms: ("quotas at", now_ms)),
        ),
        skipped_records=53,
        committed_image=Controller.committed_image,
        servers=(("PLAINTEXT", Some(counters=counters)),),
        grpc_server=Some(counters=ServerCounters(refused_connections=73)),
    )
    return figures_of(node)


def test_the_figures_of_the_quorum_are_the_replicas() -> None:
    told = gathered(replica(Unattached(election_deadline_ms=None))).quorum
    assert (told.current_leader, told.current_epoch, told.high_watermark) == (11, 12, 13)
    assert (told.log_end_epoch, told.newest_snapshot_offset) == (14, 15)
    assert (told.log_start_offset, told.log_end_offset) == (21, 22)
    assert (told.voters, told.unknown_voters) == (4, 3)
    assert (told.leaders_seen, told.snapshots_loaded) == (23, 24)
    assert (told.commit_latency.average_ms, told.commit_latency.max_ms) == (8, 10)
    assert told.election_latency.average_ms == 40


def follower() -> Follower:
    return Follower(fetch_deadline_ms=1, fetch_timeout_ms=1, voter_check_due_ms=1)


def leader() -> Leader:
    return Leader(epoch_start_offset=1, announced_from=1, check_quorum_deadline_ms=1)


@pytest.mark.parametrize(
    ("its_replica", "state", "vote"),
    [
        (replica(follower()), "follower", 9),
        (replica(follower(), voted=None, is_voter=False), "observer", -1),
        (replica(Unattached(election_deadline_ms=1)), "voted", 9),
        (replica(Unattached(election_deadline_ms=1), voted=None), "unattached", -1),
        (replica(Candidate(election_deadline_ms=1, cause="")), "candidate", 5),
        (replica(leader(), voted=None), "leader", 5),
    ],
)
def test_a_replica_is_called_what_kafka_calls_it_and_leaders_have_voted_for_themselves(
    its_replica: Any, state: str, vote: int
) -> None:
    told = gathered(its_replica).quorum
    assert (told.state, told.current_vote) == (state, vote)


def test_the_figures_of_controller_and_broker_are_theirs() -> None:
    told = gathered(replica(Unattached(election_deadline_ms=1)))
    assert told.controller is not None
    assert told.broker is not None
    assert (told.controller.is_active, told.controller.last_applied_offset) == (True, 31)
    assert (told.controller.error_count, told.controller.broker_offsets) == (33, APPLIED)
    assert (told.broker.broker_id, told.broker.state) == (5, BrokerState.RECOVERY)
    assert (told.broker.broker_epoch, told.broker.is_fenced) == (51, True)
    assert told.broker.previous_session_ends_ms == 54
    assert (told.broker.offline_log_dirs, told.broker.skipped_records) == (52, 53)
    quotas: Any = told.broker.quotas
    assert quotas == ("quotas at", NOW_MS)
    groups: Any = told.broker.groups
    assert groups == "groups"
    transactions: Any = told.broker.transactions
    assert transactions == "transactions"
    data: Any = told.broker.data
    assert data == "data"
    assert list(told.request_times) == [{"of": 1}, {"of": 2}]
    assert told.broker.throttled_replication == {"leaderreplication": NOW_MS}
    assert told.listeners["grpc"]["refused_connections"] == 73
    counters = told.listeners["PLAINTEXT"]
    assert (counters["requests"], counters["open_connections"]) == (71, 72)
