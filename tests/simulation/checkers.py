"""What must be true after every event (design, "What correct means"); each breach raises with the facts."""

from dataclasses import dataclass, field

from raft.batches import LogBatch
from raft.messages import VoteRequest
from raft.node import RaftNode
from raft.ready import Ready
from raft.roles import Leader
from raft.voters import ReplicaKey


class InvariantBroken(AssertionError):
    """A property of the protocol does not hold; the run's seed replays it."""


@dataclass
class Checkers:
    """Watches every replica of a run; knows what was committed by whom, independent of the replicas' own memory."""

    leaders: dict[int, int] = field(default_factory=dict)
    votes: dict[tuple[int, int], ReplicaKey] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    high_watermarks: dict[int, int] = field(default_factory=dict)
    committed: list[LogBatch] = field(default_factory=list)
    checked: dict[int, int] = field(default_factory=dict)
    steps: dict[tuple[int, int], int] = field(default_factory=dict)

    def forget_life(self, node_id: int) -> None:
        """A replica died: its high watermark is relearned, its epoch is not."""
        self.high_watermarks.pop(node_id, None)
        self.checked.pop(node_id, None)

    def after_ready(self, now_ms: int, node: RaftNode, ready: Ready, log: list[LogBatch]) -> None:
        self._check_steps(now_ms, node)
        self._check_epoch(node)
        self._check_single_leader(node, log)
        if ready.truncate_to is not None and ready.truncate_to < self.high_watermarks.get(node.node_id, 0):
            raise InvariantBroken(
                f"node {node.node_id} cut its log at {ready.truncate_to}, below its high watermark"
            )
        if ready.high_watermark is not None:
            self._check_commit(node, ready.high_watermark, log)

    def _check_steps(self, now_ms: int, node: RaftNode) -> None:
        """A replica that spins is broken too (KAFKA-17751)."""
        key = (node.node_id, now_ms // 1000)
        self.steps[key] = self.steps.get(key, 0) + 1
        if self.steps[key] > 4000:
            raise InvariantBroken(f"node {node.node_id} ({node.role}) spins: over 4000 turns within a second")

    def _check_epoch(self, node: RaftNode) -> None:
        before = self.epochs.get(node.node_id, 0)
        if node.leader_epoch < before:
            raise InvariantBroken(f"node {node.node_id} went back from epoch {before} to {node.leader_epoch}")
        self.epochs[node.node_id] = node.leader_epoch

    def _check_single_leader(self, node: RaftNode, log: list[LogBatch]) -> None:
        if not isinstance(node.replica.role, Leader):
            return
        other = self.leaders.setdefault(node.leader_epoch, node.node_id)
        if other != node.node_id:
            raise InvariantBroken(f"nodes {other} and {node.node_id} both lead epoch {node.leader_epoch}")
        if node.replica.role.epoch_start_offset == log[-1].base_offset:
            self._check_leader_completeness(node, log)

    def _check_leader_completeness(self, node: RaftNode, log: list[LogBatch]) -> None:
        if log[: len(self.committed)] != self.committed:
            raise InvariantBroken(
                f"node {node.node_id} leads epoch {node.leader_epoch} without all that was committed"
            )

    def _check_commit(self, node: RaftNode, high_watermark: int, log: list[LogBatch]) -> None:
        before = self.high_watermarks.get(node.node_id, -1)
        if high_watermark < before:
            raise InvariantBroken(
                f"the high watermark of node {node.node_id} fell from {before} to {high_watermark}"
            )
        self.high_watermarks[node.node_id] = high_watermark
        position = self.checked.get(node.node_id, 0)
        while position < len(log) and log[position].next_offset <= high_watermark:
            if position == len(self.committed):
                self.committed.append(log[position])
            elif log[position] != self.committed[position]:
                raise InvariantBroken(
                    f"node {node.node_id} committed another batch at offset {log[position].base_offset} "
                    f"(epoch {log[position].leader_epoch}) than was committed before"
                )
            position += 1
        self.checked[node.node_id] = position

    def vote_granted(self, voter_id: int, request: VoteRequest) -> None:
        """Called when the grant reaches the network: a voter votes once an epoch, crashes or not."""
        if request.pre_vote:
            return
        key = (voter_id, request.replica_epoch)
        earlier = self.votes.setdefault(key, request.candidate)
        if earlier != request.candidate:
            raise InvariantBroken(
                f"node {voter_id} voted for {earlier.id} and {request.candidate.id} in epoch {request.replica_epoch}"
            )
