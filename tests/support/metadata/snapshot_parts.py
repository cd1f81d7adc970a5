"""What the tests of a running node's snapshots share: a replica that only remembers, and waiting for a thread."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from kquorum.raft.inputs import Input
from kquorum.raft.ports import QuorumAt
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.wire.metadata_records.features import (
    FeatureLevelRecord,
)

FOLDER = Path("/data/__cluster_metadata-0")
START_MS = 5_000_000
QUORUM = QuorumAt(VoterSet.of(Voter(ReplicaKey(1, UUID(int=7)))), 1)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 20))


@dataclass
class FakeReplica:
    """And the log: its start moves on request."""

    log_start_offset: int = 0
    high_watermark: int = 10_000
    applied_offset: int = 10_000
    received: list[Input] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    quorum_offsets: list[int] = field(default_factory=list)

    def quorum_at(self, end_offset: int) -> QuorumAt:
        self.quorum_offsets.append(end_offset)
        return QUORUM

    def receive(self, event: Input) -> None:
        self.received.append(event)

    def advance_log_start(self, offset: int) -> None:
        self.asked.append(offset)
        self.log_start_offset = offset


def level(name: str, number: int = 1) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=number)
