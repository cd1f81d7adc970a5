"""Replays the metadata log of a run through the product's own loader, and judges every state that it leads to."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from kquorum.cli.commands.log.files import MetadataLogFiles, the_log
from kquorum.cli.commands.log.states import State, first_state
from kquorum.cli.failures import CliError
from kquorum.metadata.image.cluster import ClusterImage
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import NO_LEADER, RECOVERING, PartitionState
from kquorum.metadata.loader import MetadataLoader
from kquorum.wire.log_batch import LogBatch, log_batch
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from tests.jepsen.checkers.node_batches import NodeLog, node_logs
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.cluster import NODES_FOLDER
from tests.jepsen.core.history import History
from tests.jepsen.core.members import Members

_SHOWN_MAX = 20
# A topic's id and a partition's.
Place = tuple[UUID, int]
# Where it is, and what is wrong there.
Violation = tuple[str, str]


class Lawful:
    """What holds of every state of the cluster, whichever request changed it:

    - A partition has no leader, or a registered and unfenced one that is in its ISR; the ISR lies within the replicas,
      and no member of an ISR of several is fenced.
    - Each change of a partition is a new partition epoch, each new leader a new leader epoch. A new leader was in sync
      or eligible before, unless it recovers (an unclean election), or the change that made it so was the old leader's
      word: the one that ends a reassignment, or that of a leader about to shut down.
    - A topic has one id and one name, and an id is never used again. Configs of a topic are there as long as it is.
    - The epochs of a broker grow with each of its processes, and never go back.
    - Every record can be replayed on the state before it.

    One log is judged, the longest that is whole; where none begins at offset 0, from the oldest snapshot on that goes
    with it. That they are all the same is for Replicas to say. It is judged to its end, committed or not: a controller
    proposes only what is lawful after all that it holds, so a log end that was not truncated yet is no excuse.
    """

    name = "lawful"

    def __init__(self, folder: Path, members: Members) -> None:
        self._folder = folder
        self._members = members

    def check(self, history: History) -> Results:
        for log in sorted(node_logs(self._folder, self._members.all), key=_length, reverse=True):
            files = the_log(self._folder / NODES_FOLDER / str(log.node) / "data")
            # Without a sound snapshot it is unknown what the records of a log that begins later refer to.
            with suppress(CliError):
                return self._judged(log.node, files, first_state(files))
        return {VALID_KEY: Verdict.UNKNOWN, "states": 0}

    def _judged(self, node: int, files: MetadataLogFiles, first: State) -> Results:
        states = States()
        loader = MetadataLoader(first.image, on_fault=states.take_fault)
        if not first.image.is_empty:
            states.take(loader.full_delta(), first.image)
        loader.publishers.append(states.take)
        end_offset = first.offset
        for batch in _batches(files, first.offset):
            loader.handle_commit([batch])
            end_offset = batch.next_offset
        passed = Verdict.VALID if end_offset > first.offset else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if states.violation_count else passed,
            "log": node,
            "from_offset": first.offset,
            "end_offset": end_offset,
            "states": states.count,
            "partition_changes": states.partition_changes,
            "violation_count": states.violation_count,
            "violations": states.violations,
        }


def _length(log: NodeLog) -> tuple[bool, int, int]:
    return log.is_whole, log.end - log.start, -log.node


def _batches(files: MetadataLogFiles, from_offset: int) -> Iterator[LogBatch]:
    """Up to the first damage: what comes behind a hole is not to be understood without it."""
    following: int | None = None
    for segment in files.segments:
        for found in scan_batches(Path(segment.path).read_bytes(), base_offset=following):
            if not isinstance(found, ScannedBatch):
                return
            following = found.header.next_offset
            if following > from_offset:
                yield log_batch(bytes(found.data))


class States:
    """Takes one state after the other, each with the delta that led to it, and looks at nothing but what changed."""

    def __init__(self) -> None:
        self.count = 0
        self.partition_changes = 0
        self.violation_count = 0
        self.violations: list[Results] = []
        self._topic_ids: set[UUID] = set()
        self._broker_epochs: dict[int, int] = {}
        # By broker: when it is fenced, only these can have become wrong.
        self._in_sync: dict[int, set[Place]] = defaultdict(set)

    def take(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.count += 1
        offset = image.provenance.last_contained_offset
        self._add(offset, self._topics(delta, image))
        self._add(offset, _configs(delta, image))
        self._add(offset, self._brokers(delta))
        self._add(offset, self._partitions(delta, image))

    def take_fault(self, fault: ReplayError) -> None:
        self._add(fault.offset, [(f"a {type(fault.record).__name__}", f"cannot be replayed: {fault.reason}")])

    def _add(self, offset: int, found: Iterable[Violation]) -> None:
        for where, what in found:
            self.violation_count += 1
            if len(self.violations) < _SHOWN_MAX:
                self.violations.append({"offset": offset, "where": where, "what": what})

    def _topics(self, delta: MetadataDelta, image: MetadataImage) -> Iterator[Violation]:
        by_id, by_name = image.topics.by_id, image.topics.by_name
        if len(by_id) != len(by_name):
            yield "topics", f"{len(by_id)} ids, but {len(by_name)} names"
        for topic_id in delta.created_topic_ids:
            topic = by_id[topic_id]
            if topic_id in self._topic_ids:
                yield topic.name, f"its id {topic_id} was that of a topic before"
            if by_name.get(topic.name) is not topic:
                yield topic.name, "by its name another topic is found than by its id"
        self._topic_ids |= delta.created_topic_ids

    def _brokers(self, delta: MetadataDelta) -> Iterator[Violation]:
        for broker_id, broker in delta.changed_brokers.items():
            if broker is None:
                continue
            newest = self._broker_epochs.get(broker_id, -1)
            before = delta.image.cluster.brokers.get(broker_id)
            is_another = before is None or before.incarnation_id != broker.incarnation_id
            if broker.epoch < newest or (is_another and broker.epoch == newest):
                how = "another process of it has" if is_another else "it has"
                yield f"broker {broker_id}", f"{how} epoch {broker.epoch} after epoch {newest}"
            self._broker_epochs[broker_id] = max(newest, broker.epoch)

    def _partitions(self, delta: MetadataDelta, image: MetadataImage) -> Iterator[Violation]:
        for topic_id in delta.deleted_topic_ids:
            for partition_id, gone in delta.image.topics.by_id[topic_id].partitions.items():
                self._note_in_sync((topic_id, partition_id), gone.isr, ())
        for place in self._touched(delta, image):
            state = image.topics.partition(*place)
            if state is not None:
                name = f"{image.topics.by_id[place[0]].name}-{place[1]}"
                before = delta.image.topics.partition(*place)
                yield from ((name, what) for what in self._partition(image.cluster, place, before, state))

    def _partition(
        self, cluster: ClusterImage, place: Place, before: PartitionState | None, state: PartitionState
    ) -> Iterator[str]:
        self._note_in_sync(place, () if before is None else before.isr, state.isr)
        yield from _of_state(cluster, state)
        if state != before:
            self.partition_changes += 1
            if before is not None:
                yield from _of_step(cluster, before, state)

    def _touched(self, delta: MetadataDelta, image: MetadataImage) -> set[Place]:
        changed = {(topic_id, each) for topic_id, ids in delta.changed_topics.items() for each in ids}
        for broker_id in delta.changed_brokers:
            if _is_away(image.cluster, broker_id):
                changed |= self._in_sync[broker_id]
        return changed

    def _note_in_sync(self, place: Place, before: Iterable[int], after: Iterable[int]) -> None:
        for broker_id in before:
            self._in_sync[broker_id].discard(place)
        for broker_id in after:
            self._in_sync[broker_id].add(place)


def _configs(delta: MetadataDelta, image: MetadataImage) -> Iterator[Violation]:
    resources = {each for each in delta.changed_configs if each.type == TOPIC}
    for topic_id in delta.deleted_topic_ids:
        resources.add(ConfigResource(TOPIC, delta.image.topics.by_id[topic_id].name))
    for resource in sorted(resources):
        if resource in image.configs.resources and resource.name not in image.topics.by_name:
            yield resource.name, "there are configs of it, and no such topic"


def _is_away(cluster: ClusterImage, broker_id: int) -> bool:
    broker = cluster.brokers.get(broker_id)
    return broker is None or broker.fenced


def _of_state(cluster: ClusterImage, state: PartitionState) -> Iterator[str]:
    if state.leader != NO_LEADER:
        if state.leader not in state.isr:
            yield f"its leader {state.leader} is not in the ISR {state.isr}"
        if _is_away(cluster, state.leader):
            yield f"its leader {state.leader} is fenced or not registered"
    if beyond := set(state.isr) - set(state.replicas):
        yield f"{sorted(beyond)} are in the ISR, and no replicas {state.replicas}"
    if len(state.isr) > 1 and (away := [each for each in state.isr if _is_away(cluster, each)]):
        yield f"{away} of the ISR {state.isr} are fenced or not registered"


def _of_step(cluster: ClusterImage, before: PartitionState, after: PartitionState) -> Iterator[str]:
    if after.partition_epoch <= before.partition_epoch:
        yield f"it changed in partition epoch {before.partition_epoch}, and has {after.partition_epoch} since"
    if after.leader_epoch < before.leader_epoch:
        yield f"its leader epoch went back from {before.leader_epoch} to {after.leader_epoch}"
    if after.leader == before.leader:
        return
    if after.leader_epoch == before.leader_epoch:
        yield f"leader {before.leader} gave way to {after.leader} in leader epoch {after.leader_epoch}"
    # The states between several changes in one batch are not visible.
    is_one_change = after.partition_epoch == before.partition_epoch + 1
    if is_one_change and after.leader != NO_LEADER and not _is_entitled(cluster, before, after):
        yield f"its new leader {after.leader} was not in the ISR {before.isr}, and does not recover"


def _is_entitled(cluster: ClusterImage, before: PartitionState, after: PartitionState) -> bool:
    if after.leader in (*before.isr, *before.elr) or after.leader_recovery_state == RECOVERING:
        return True
    was_reassigned = bool(before.adding_replicas or before.removing_replicas)
    has_ended = was_reassigned and not (after.adding_replicas or after.removing_replicas)
    old_leader = cluster.brokers.get(before.leader)
    is_leaving = old_leader is not None and old_leader.in_controlled_shutdown and before.leader in after.isr
    return after.leader in after.isr and (has_ended or is_leaving)
