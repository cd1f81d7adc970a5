"""A real controller and the model side by side: both get each request, and must answer, write and become the same."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.partitions import change_batch
from kquorum.metadata.controller.partitions.change_batch import CHANGES_AT_ONCE
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.metadata_records.cluster import RegisterBrokerRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import decode_record
from kquorum.wire.schema import MetadataRecord
from tests.reference_model import brokers
from tests.reference_model.objects import Cluster, Refused
from tests.reference_model.reading import differences, in_order, told_image, told_model, told_records
from tests.support.api_calls import Values
from tests.support.controller_world import LEVELS, SESSION_MS, World
from tests.support.image_invariants import FENCED_LEADER, image_violations

ELR_FEATURE = "eligible.leader.replicas.version"
FEATURES = [*LEVELS, {"name": ELR_FEATURE, "min_supported_version": 0, "max_supported_version": 1}]
OK = "none"


@dataclass
class Held:
    """An answer that waits for the commit, and what it is to be; the model as it is after the request."""

    answers: list[Values]
    check: Callable[[Values], None]
    end_batch: int
    model: Cluster
    is_asked: bool = True


@dataclass
class Twin:
    """Call `ask` with what to send, how the model does it, and how an answer tells of the outcome.

    As long as `is_holding`, nothing is committed; `commit_some` and `fail_over` end that.
    """

    level: int
    has_elr: bool
    is_holding: bool = False
    is_late: bool = False
    held: list[Held] = field(default_factory=list)

    def __post_init__(self) -> None:
        config = ControllerConfig(
            metadata_max_idle_interval_ms=0,
            auto_leader_rebalance_enable=False,
            unclean_leader_election_interval_ms=0,
            bootstrap_records=bootstrap_records(self.level, {ELR_FEATURE: 1} if self.has_elr else {}),
        )
        self.world = World(config).lead()
        self.world.commit()
        now_ms = self.world.now_ms
        first_election_ms = now_ms + brokers.ELECTIONS_EVERY_MS
        at_once = change_batch.CHANGES_AT_ONCE
        self.model = Cluster(self.level, self.has_elr, SESSION_MS, now_ms, first_election_ms, at_once)
        if self.has_elr:
            # Written with the feature: the lists rest on one minimum for all nodes.
            self.model.configs[""] = {"min.insync.replicas": "1"}
        self.committed_model = self.model.copy()
        self.topic_names: dict[UUID, str] = {}
        self.image = MetadataImage.empty()
        self.image_end = 0
        self._step_images()

    # Requests

    def ask(
        self,
        api_key: ApiKey,
        version: int,
        decide: Callable[[list[tuple[int, MetadataRecord]]], Any],
        code_of: Callable[[Values], str],
        check: Callable[[Values, Any], None] = lambda _answer, _decided: None,
        **values: Any,
    ) -> None:
        """`decide` gets the records that the controller wrote, for what only it can know: ids and offsets."""
        start = self.world.raft.log_end_offset
        answers = self.world.send(api_key, version, **values)
        if not self.is_late:
            self._settle()
        written = self._written(start)
        before = self.model.copy()
        decided: Any = None
        try:
            # As it is now: the answer may wait for its commit, and the model is changed in place meanwhile.
            decided, code = deepcopy(decide(written)), OK
        except Refused as refused:
            code = refused.code
            if not refused.is_written:
                self.model = before

        def check_answer(answer: Values) -> None:
            assert code_of(answer) == code, f"{api_key.name}: {code_of(answer)}, but {code} by the rules"
            if code == OK:
                check(answer, decided)

        self._finish(start, written, answers, check_answer)

    def pass_time(self, milliseconds: int) -> None:
        self.is_late = False
        start = self.world.raft.log_end_offset
        self.world.advance(milliseconds)
        brokers.pass_time(self.model, milliseconds)
        self._finish(start, self._written(start), None, lambda _answer: None)

    def be_late(self, milliseconds: int) -> None:
        """Time passes, and requests are there before the controller looks what is due, which is when more passes."""
        self.is_late = True
        self.world.now_ms += milliseconds
        self.model.now_ms += milliseconds

    # Commits and the loss of leadership

    def commit_some(self, count: int) -> None:
        """Of the decisions held, the first so many are committed, and answered."""
        count = min(count, len(self.held))
        done, self.held = self.held[:count], self.held[count:]
        if not done:
            return
        batches = done[-1].end_batch - self.world.raft.committed
        if batches > 0:
            self.world.commit(batches)
        self.committed_model = done[-1].model
        for each in done:
            if each.is_asked:
                assert len(each.answers) == 1, "an answer is due once what it tells of is committed"
                each.check(each.answers[0])

    def fail_over(self) -> None:
        """What was not committed is gone with the controller that decided it."""
        world = self.world
        # An answer that tells of nothing new waits only for what was before it; it may have been given already.
        unanswered = [each for each in self.held if each.is_asked and not each.answers]
        world.follow(1, world.raft.leader_epoch + 1)
        for each in unanswered:
            assert "not_controller" in str(each.answers), f"answered {each.answers} without a commit"
        world.raft.truncate_uncommitted()
        self.held = []
        self.model = self.committed_model.copy()
        self.model.now_ms, self.model.log = world.now_ms, []
        world.lead(world.raft.leader_epoch + 1)
        world.commit()
        brokers.forget_sessions(self.model)
        self.committed_model = self.model.copy()
        self.image, self.image_end = world.controller.committed_image, world.raft.log_end_offset
        self._compare_images()

    # What both must agree on

    def _finish(
        self,
        start: int,
        written: list[tuple[int, MetadataRecord]],
        answers: list[Values] | None,
        check: Callable[[Values], None],
    ) -> None:
        self.topic_names.update(
            {topic.id: topic.name for topic in self.world.controller.image.topics.by_id.values()}
        )
        told = told_records((record for _, record in written), self.topic_names)
        expected = in_order(self.model.log)
        self.model.log = []
        assert told == expected, f"records from offset {start}:\n  controller {told}\n  rules      {expected}"
        self._compare_images()
        self._step_images()
        # What goes on in turns goes on after an answer that tells of its beginning.
        if self.world.raft.committed < len(self.world.raft.batches) and not self._is_in_turns:
            assert not answers, f"answered {answers} while something is not committed"
        model, end_batch = self.model.copy(), len(self.world.raft.batches)
        held = Held([] if answers is None else answers, check, end_batch, model, answers is not None)
        self.held.append(held)
        if not self.is_holding:
            self.commit_some(len(self.held))

    def _compare_images(self) -> None:
        found = list(differences(told_image(self.world.controller.image), told_model(self.model)))
        assert not found, "\n".join(found)

    @property
    def _is_in_turns(self) -> bool:
        return self.model.changes_at_once < CHANGES_AT_ONCE

    def _step_images(self) -> None:
        """Record by record, so that no reader of the log ever sees what must not be.

        Only where a fence comes before more changes than fit one decision, its broker may lead until the last of them.
        """
        for offset, record in self._written(self.image_end):
            delta = MetadataDelta(self.image)
            delta.replay(record, offset)
            image = delta.apply(Provenance(last_contained_offset=offset))
            found = image_violations(image, self.image)
            if self._is_in_turns:
                found = [each for each in found if FENCED_LEADER not in each]
            assert not found, f"after {record}:\n" + "\n".join(found)
            self.image = image
        self.image_end = self.world.raft.log_end_offset
        found = image_violations(self.image)
        assert not found, "\n".join(found)

    def _written(self, start: int) -> list[tuple[int, MetadataRecord]]:
        return [
            (record.offset, decode_record(record.value or b""))
            for batch in reversed(self._batches_from(start))
            if not batch.is_control
            for record in batch.records
            if record.offset >= start
        ]

    def _batches_from(self, start: int) -> list[Any]:
        """The last first."""
        batches = []
        for batch in reversed(self.world.raft.batches):
            if batch.next_offset <= start:
                break
            batches.append(batch)
        return batches

    def _settle(self) -> None:
        """What goes on in turns goes on."""
        world = self.world
        while (due := world.controller.next_deadline_ms()) is not None and due <= world.now_ms:
            world.controller.handle_time(world.now_ms)


def registration_of(written: list[tuple[int, MetadataRecord]]) -> tuple[int, int]:
    """Epoch and offset of the registration among these records; -1 without one."""
    for offset, record in written:
        if isinstance(record, RegisterBrokerRecord):
            return record.broker_epoch, offset
    return -1, -1
