"""A controller with everything around it faked: the test decides when records are committed and what time it is."""

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.audit_note import AUDIT_NOTE_TAG
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import decode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.api_calls import Values, read_answer, request_of

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
NODE_ID = 3000
SESSION_MS = 9000
LEVELS = [
    {"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 30},
    {"name": "group.version", "min_supported_version": 0, "max_supported_version": 1},
    {"name": "transaction.version", "min_supported_version": 0, "max_supported_version": 2},
]


class SeededRandomSource:
    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def randint(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


class FakeRaft:
    """A log that grows by proposals; nothing is committed before the test says so."""

    def __init__(self) -> None:
        self.node_id = NODE_ID
        self.leader_id = -1
        self.leader_epoch = 0
        self.high_watermark = 0
        self.batches: list[LogBatch] = []
        self.committed = 0
        self.is_deposed = False
        self.kraft_version = 0
        self.voters = VoterSet.of(Voter(key=ReplicaKey(NODE_ID)))
        # With group commit, proposals wait here and share a batch, which is made when it is asked for.
        self.is_grouping = False
        self.waiting: list[bytes] = []

    @property
    def log_end_offset(self) -> int:
        return (self.batches[-1].next_offset if self.batches else 0) + len(self.waiting)

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        if self.is_deposed or leader_epoch != self.leader_epoch or self.leader_id != self.node_id:
            raise NotLeaderError(self.leader_id, self.leader_epoch)
        self.waiting += values
        if not self.is_grouping:
            self.drain(now_ms)
        return self.log_end_offset - 1

    def drain(self, now_ms: int) -> None:
        values, self.waiting = self.waiting, []
        if values:
            self.append(now_ms, [(None, value) for value in values])

    def resign(self, now_ms: int, leader_epoch: int) -> None:
        raise AssertionError("no controller resigns here")

    def append(
        self, now_ms: int, records: Sequence[tuple[bytes | None, bytes | None]], *, control: bool = False
    ) -> None:
        batch = build_batch(self.log_end_offset, self.leader_epoch, now_ms, records, control=control)
        self.batches.append(batch)

    def take_uncommitted(self, count: int | None = None) -> list[LogBatch]:
        end = len(self.batches) if count is None else self.committed + count
        taken = self.batches[self.committed : end]
        self.committed += len(taken)
        return taken

    def truncate_uncommitted(self) -> None:
        del self.batches[self.committed :]

    def records(self, start_offset: int = 0) -> list[MetadataRecord]:
        """Every data record from an offset on, decoded."""
        return [
            decode_record(record.value or b"")
            for batch in self.batches
            if not batch.is_control
            for record in batch.records
            if record.offset >= start_offset
        ]


class World:
    """One controller node; `answers` collects what `send` gets, None while an answer is held back."""

    def __init__(
        self, config: ControllerConfig | None = None, seed: int = 1, image: MetadataImage | None = None
    ) -> None:
        self.now_ms = 1_700_000_000_000
        self.raft = FakeRaft()
        self.controller = Controller(
            config or ControllerConfig(), self.raft, SeededRandomSource(seed), CLUSTER_ID, image
        )

    def lead(self, epoch: int = 1) -> "World":
        """Become the leader of an epoch, everything before it committed; its first record is a control record."""
        self.raft.leader_id, self.raft.leader_epoch, self.raft.is_deposed = NODE_ID, epoch, False
        self.commit()
        self.raft.append(self.now_ms, [(b"\0\0\0\2", b"\0\0\0")], control=True)
        self.controller.handle_leader_change(self.now_ms, NODE_ID, epoch)
        return self

    def follow(self, leader_id: int, epoch: int) -> None:
        self.raft.leader_id, self.raft.leader_epoch = leader_id, epoch
        self.controller.handle_leader_change(self.now_ms, leader_id, epoch)

    def commit(self, batches: int | None = None) -> None:
        self.raft.drain(self.now_ms)
        taken = self.raft.take_uncommitted(batches)
        if taken:
            self.controller.handle_commit(self.now_ms, taken)

    def send(self, api_key: ApiKey, version: int, **values: Any) -> list[Any]:
        """The list gets the answer when there is one, as a client of this version reads it."""
        return self.send_body(api_key, version, request_of(api_key, version, values))

    def send_body(self, api_key: ApiKey, version: int, body: Any) -> list[Any]:
        """As `send`; `body` is what a handler gets."""
        answers: list[Any] = []
        request = ControllerRequest(
            api_key=api_key,
            api_version=version,
            body=body,
            principal="User:alice",
            client_id="admin",
            client_host="10.0.0.7",
            correlation_id=17,
        )

        def reply(answer: Response | Values) -> None:
            assert not answers, "a request is answered once"
            answers.append(read_answer(api_key, version, answer))

        self.controller.handle_request(self.now_ms, request, reply)
        return answers

    def ask(self, api_key: ApiKey, version: int, **values: Any) -> Any:
        """Send, commit, answer; a long request is decided in several turns."""
        answers = self.send(api_key, version, **values)
        self.commit()
        while not answers and (due := self.controller.next_deadline_ms()) is not None and due <= self.now_ms:
            self.controller.handle_time(self.now_ms)
            self.commit()
        assert len(answers) == 1
        return answers[0]

    def advance(self, milliseconds: int) -> None:
        """Let time pass as a driver does, which calls at every deadline."""
        target = self.now_ms + milliseconds
        while (due := self.controller.next_deadline_ms()) is not None and due <= target:
            self.now_ms = max(self.now_ms, due)
            self.controller.handle_time(self.now_ms)
        self.now_ms = target

    # Brokers

    def register(self, broker_id: int, incarnation: int = 1, **changes: Any) -> Any:
        values = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": UUID(int=broker_id * 1000 + incarnation),
            "listeners": [
                {"name": "PLAINTEXT", "host": f"b{broker_id}", "port": 9092, "security_protocol": 0}
            ],
            "features": LEVELS,
            "rack": None,
            "log_dirs": [UUID(int=10_000 + broker_id)],
        }
        return self.ask(ApiKey.BROKER_REGISTRATION, 4, **{**values, **changes})

    def send_heartbeat(self, broker_id: int, /, **changes: Any) -> list[Any]:
        broker = self.controller.image.cluster.brokers[broker_id]
        values = {
            "broker_id": broker_id,
            "broker_epoch": broker.epoch,
            "current_metadata_offset": self.controller.committed_image.provenance.last_contained_offset,
            "want_fence": False,
            "want_shut_down": False,
        }
        return self.send(ApiKey.BROKER_HEARTBEAT, 1, **{**values, **changes})

    def heartbeat(self, broker_id: int, /, **changes: Any) -> Any:
        answers = self.send_heartbeat(broker_id, **changes)
        self.commit()
        assert len(answers) == 1
        return answers[0]

    def add_brokers(self, *broker_ids: int, **changes: Any) -> "World":
        """Registered, caught up and unfenced."""
        for broker_id in broker_ids:
            assert self.register(broker_id, **changes).error_code is ErrorCode.none
            assert not self.heartbeat(broker_id).is_fenced
        return self

    # Topics

    def create(self, *topics: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Answers by topic name."""
        values: dict[str, Any] = {"topics": [topic(**each) for each in topics], "timeout": 1000} | changes
        answer = self.ask(ApiKey.CREATE_TOPICS, 7, **values)
        return {entry.name: entry for entry in answer.topics}

    def delete(self, *names: str) -> dict[str, Any]:
        topics = [{"name": name, "topic_id": None} for name in names]
        answer = self.ask(ApiKey.DELETE_TOPICS, 6, topics=topics, timeout=1000)
        return {entry.name: entry for entry in answer.responses}

    def partition(self, name: str, partition_id: int = 0) -> PartitionState:
        state = self.controller.image.topics.by_name[name].partitions.get(partition_id)
        assert state is not None
        return state


def at_level(level: int) -> World:
    return World(ControllerConfig(bootstrap_records=bootstrap_records(level, {}))).lead()


def kinds(world: World, start: int) -> list[str]:
    return [
        type(record).__name__ for record in world.raft.records(start) if "NoOp" not in type(record).__name__
    ]


def topic(name: str, **changes: Any) -> dict[str, Any]:
    defaults = {"num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    return {"name": name, **defaults, **changes}


def assigned(name: str, *replicas: Sequence[int]) -> dict[str, Any]:
    """A topic whose partitions are placed by the client."""
    assignments = [
        {"partition_index": index, "broker_ids": tuple(members)} for index, members in enumerate(replicas)
    ]
    return topic(name, num_partitions=-1, replication_factor=-1, assignments=assignments)


def audit_notes(record: NoOpRecord) -> tuple[AuditNote, ...]:
    """The notes that a record carries, none or one; raises protobuf's DecodeError when one is garbage."""
    return tuple(
        AuditNote.FromString(value) for tag, value in record.unknown_tagged_fields if tag == AUDIT_NOTE_TAG
    )
