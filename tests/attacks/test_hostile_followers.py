"""Followers that ask under thousands of names, or park thousands of Fetches, must not hold up the leader.

A replica that fetches is known by its id and directory, and both are what it says they are. A hundred connections with
sixteen parked Fetches each, all of other replicas, held a leader up for several seconds.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.raft.adapters.kafka_codec.codec import CALLED_APIS, RAFT_APIS, api_key_of, decode_response
from kquorum.raft.adapters.kafka_codec.codec import encode_request as encode_body
from kquorum.raft.leader import fetch_handler
from kquorum.raft.messages import (
    MAX_EPOCH,
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    Request,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from kquorum.raft.roles import Leader
from kquorum.raft.voters import Endpoint, ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.protocol.headers import decode_response as decode_frame
from tests.attacks.rig import rig, send
from tests.support.calls import calls_of
from tests.support.cluster import Cluster
from tests.support.kio.frames import encode_request
from tests.support.raft.context import RaftContext

# About a millisecond of Python.
MOST_CALLS = 5_000
FOR_EVER_MS = 2**31 - 1
ANONYMOUS = ReplicaKey(-1)


def unknown_replicas() -> Iterator[ReplicaKey]:
    return (ReplicaKey(1_000 + number, UUID(int=number + 1)) for number in count())


def leading() -> tuple[RaftContext, Leader]:
    """A leader whose voter 2 has its first record, as it will have all that the leader has."""
    context = RaftContext()
    epoch = context.become_leader()
    context.receive(context.fetch(2, 1, epoch))
    context.now_ms += 1
    leader = context.node.replica.role
    assert isinstance(leader, Leader)
    return context, leader


def waiting(context: RaftContext, replica: ReplicaKey, wait_ms: int = FOR_EVER_MS) -> FetchRequest:
    fetch = context.fetch(2, context.log_end_offset, context.node.leader_epoch, context.node.high_watermark)
    return replace(fetch, replica=replica, max_wait_ms=wait_ms)


def calls_of_a_fetch(context: RaftContext, request: FetchRequest) -> int:
    return calls_of(lambda: context.receive_without_a_turn(request))


def test_replicas_under_ever_new_names_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new name took longer than the one before: all known ones were looked at."""
    monkeypatch.setattr(fetch_handler, "MAX_OBSERVERS", 1_000)
    context, leader = leading()
    names = unknown_replicas()
    for _ in range(2_000):
        context.receive_without_a_turn(waiting(context, next(names), 0))
    context.turn()
    assert len(leader.progress) <= fetch_handler.MAX_OBSERVERS + 2
    assert calls_of_a_fetch(context, waiting(context, next(names))) < MOST_CALLS
    assert context.node.replica.voters.voters[2].key in leader.progress


NAMES: dict[str, Callable[[], Iterator[ReplicaKey]]] = {
    "named": unknown_replicas,
    "anonymous": lambda: repeat(ANONYMOUS),
    # A static voter is known by its id, whatever directory it names.
    "as a voter": lambda: (ReplicaKey(2, UUID(int=number + 1)) for number in count()),
}


@pytest.mark.parametrize("kind", NAMES)
def test_fetches_are_not_parked_without_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the bound wait for a short time only, however long they ask for."""
    monkeypatch.setattr(fetch_handler, "MAX_PARKED", 1_000)
    context, leader = leading()
    names = NAMES[kind]()
    for _ in range(2_000):
        context.receive_without_a_turn(waiting(context, next(names)))
    assert calls_of_a_fetch(context, waiting(context, next(names))) < MOST_CALLS
    context.advance(fetch_handler.CROWDED_WAIT_MS)
    while len(leader.parked) > fetch_handler.MAX_PARKED:
        before = len(leader.parked)
        context.advance(1)
        assert len(leader.parked) < before, "the next slice is answered at once"


def fetches_within(
    context: RaftContext, wants: Mapping[ReplicaKey, int], span_ms: int
) -> Counter[ReplicaKey]:
    """How often each replica fetches in so much time; they wait so long each, and ask again 1 ms after each answer."""
    fetches: Counter[ReplicaKey] = Counter()
    under_way: dict[int, ReplicaKey] = {}
    asking = list(wants)
    context.responses.clear()
    for _ in range(span_ms):
        for replica in asking:
            context.receive_without_a_turn(waiting(context, replica, wants[replica]))
            under_way[context.last_request_id] = replica
            fetches[replica] += 1
        context.advance(1)
        asking = [under_way.pop(request_id) for request_id in context.responses if request_id in under_way]
        context.responses.clear()
    return fetches


def test_replicas_that_are_too_many_to_wait_do_not_keep_each_other_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A Fetch that found no room had the oldest one answered, whose replica came back for the room of the next: of
    1,200 observers of an idle cluster, each fetched 80 times in half a second."""
    monkeypatch.setattr(fetch_handler, "MAX_PARKED", 100)
    context, _ = leading()
    observers = dict(zip(unknown_replicas(), repeat(500, 120), strict=False))
    fetches = fetches_within(context, observers, span_ms=1_000)
    assert max(fetches.values()) <= 2
    assert min(fetches.values()) == 2


def test_an_observer_rests_while_others_take_all_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_handler, "MAX_PARKED", 100)
    context, leader = leading()
    observer = ReplicaKey(7, UUID(int=7))
    wants = dict(zip(unknown_replicas(), repeat(FOR_EVER_MS, 150), strict=False)) | {observer: 500}
    fetches = fetches_within(context, wants, span_ms=2_000)
    assert fetches[observer] <= 4
    assert fetches.total() <= 100 + 51 * 4
    assert len(leader.parked) <= 151


def test_a_turn_costs_as_much_however_many_wait() -> None:
    """All of them were looked at in each turn, which each request has."""
    context, _ = leading()
    names = unknown_replicas()
    for _ in range(2_000):
        context.receive_without_a_turn(waiting(context, next(names)))
    context.turn()
    voter = waiting(context, ReplicaKey(2))
    assert calls_of(lambda: context.receive(voter)) < MOST_CALLS
    earlier = waiting(context, next(unknown_replicas()))
    assert calls_of(lambda: [context.receive(earlier) for _ in range(10)]) < 10 * MOST_CALLS // 5


def test_a_commit_answers_the_voters_first_and_the_others_in_slices() -> None:
    context, leader = leading()
    names = unknown_replicas()
    for _ in range(1_000):
        context.receive_without_a_turn(waiting(context, next(names)))
    context.receive(waiting(context, ReplicaKey(2)))
    voters_fetch = context.last_request_id
    context.turn()
    context.responses.clear()
    context.auto_flush = False
    context.node.propose(context.now_ms, context.node.leader_epoch, [b"value"])
    ready = context.turn()
    assert len(context.responses) == fetch_handler.ANSWERS_A_TURN + 1
    answer = context.responses[voters_fetch]
    assert isinstance(answer, FetchResponse)
    assert answer.error == 0
    while leader.parked:
        assert ready.deadline_ms == context.now_ms + 1, "the next slice is due at once"
        before = len(context.responses)
        ready = context.advance(1)
        assert 0 < len(context.responses) - before <= fetch_handler.ANSWERS_A_TURN


def test_a_voters_fetch_is_not_displaced_by_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_handler, "MAX_PARKED", 1_000)
    context, _ = leading()
    names = unknown_replicas()
    assert context.receive(waiting(context, ReplicaKey(2))) is None
    voters_fetch = context.last_request_id
    for _ in range(fetch_handler.MAX_PARKED + 1):
        context.receive_without_a_turn(waiting(context, next(names)))
    context.advance(fetch_handler.CROWDED_WAIT_MS)
    assert voters_fetch not in context.responses
    assert context.receive(waiting(context, ReplicaKey(3))) is None
    voters_fetch = context.last_request_id
    context.advance(fetch_handler.CROWDED_WAIT_MS)
    assert voters_fetch not in context.responses, (
        "a voter waits as long as it asks for, where there is no room"
    )


@pytest.mark.slow
def test_a_leader_keeps_its_epoch_while_unknown_replicas_park_their_fetches(tmp_path: Path) -> None:
    names = unknown_replicas()

    def fetch(correlation_id: int, offset: int, epoch: int) -> bytes:
        request = FetchRequest(
            cluster_id=None,
            replica=next(names),
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            max_wait_ms=FOR_EVER_MS,
            max_bytes=2**31 - 1,
        )
        return encode_request(ApiKey.FETCH, 17, correlation_id, "attacker", encode_body(request, 17))

    with Cluster(tmp_path, controllers=3, brokers=0) as cluster:
        cluster.start()
        cluster.leader_id()
        before = cluster.quorum()
        port = cluster.ports[before.leader_id]

        async def attack(rounds: int = 3, connections: int = 400) -> list[bytes | None]:
            answers: list[bytes | None] = []
            for _ in range(rounds):
                offset = before.high_watermark
                requests = (fetch(number, offset, before.leader_epoch) for number in range(connections))
                answers += await asyncio.gather(*(send(port, request) for request in requests))
            return answers

        answers = asyncio.run(attack())
        assert all(answers), "each Fetch is answered"
        after = cluster.quorum()
        assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)
        assert len(after.observers) <= fetch_handler.MAX_OBSERVERS


ATTACKER = ReplicaKey(2, UUID(int=2))
ENDPOINTS = (Endpoint("CONTROLLER", "attacker.example", 9093),)
OF_THE_QUORUM: tuple[Request, ...] = (
    VoteRequest(
        cluster_id=None,
        replica_epoch=MAX_EPOCH,
        candidate=ATTACKER,
        voter=ReplicaKey(1),
        last_offset=2**62,
        last_offset_epoch=MAX_EPOCH - 1,
        pre_vote=False,
    ),
    BeginQuorumEpochRequest(cluster_id=None, leader_id=2, leader_epoch=MAX_EPOCH, leader_endpoints=ENDPOINTS),
    EndQuorumEpochRequest(
        cluster_id=None, leader_id=2, leader_epoch=MAX_EPOCH, preferred_candidates=(ATTACKER,)
    ),
    FetchRequest(
        cluster_id=None,
        replica=ATTACKER,
        current_leader_epoch=1,
        fetch_offset=2**62,
        last_fetched_epoch=1,
        max_wait_ms=FOR_EVER_MS,
        max_bytes=2**31 - 1,
    ),
    FetchSnapshotRequest(
        cluster_id=None,
        replica=ATTACKER,
        current_leader_epoch=1,
        snapshot_id=OffsetAndEpoch(2**62, MAX_EPOCH),
        position=2**62,
        max_bytes=2**31 - 1,
    ),
    DescribeQuorumRequest(),
    AddRaftVoterRequest(cluster_id=None, timeout_ms=FOR_EVER_MS, voter=ATTACKER, endpoints=ENDPOINTS),
    RemoveRaftVoterRequest(cluster_id=None, voter=ReplicaKey(1)),
    UpdateRaftVoterRequest(
        cluster_id=None, current_leader_epoch=MAX_EPOCH, voter=ATTACKER, endpoints=ENDPOINTS
    ),
)


def test_no_request_of_the_quorum_passes_without_its_permission(tmp_path: Path) -> None:
    """Whether the sender leads, votes or follows is only what it says. What passes reaches the replica, which is none
    in the rig: the connection would be closed."""
    assert {api_key_of(request) for request in OF_THE_QUORUM} == set(RAFT_APIS)

    async def test() -> None:
        async with rig(tmp_path, topics=1, allows_clients=False) as built:
            for request in OF_THE_QUORUM:
                api_key = api_key_of(request)
                version = CALLED_APIS[api_key][1]
                frame = encode_request(api_key, version, 1, "attacker", encode_body(request, version))
                answer = await send(built.controller.bound_port, frame)
                assert answer is not None, f"{api_key.name} reached the replica"
                message = decode_frame(message_types(api_key)[0], version, answer)
                error = decode_response(api_key, message).error
                assert error is ErrorCode.cluster_authorization_failed, api_key.name

    asyncio.run(test())
