"""Planted bugs in the coordinator of consumer groups: each safeguard, taken out, is missed by the random streams."""

from collections.abc import Callable
from typing import Any

import pytest

from kquorum.broker.coordinators.coordinator_log import CoordinatorLog
from kquorum.broker.groups import consumer_protocol, reconciliation
from kquorum.broker.groups.assignors import ASSIGNORS, assign_range
from kquorum.broker.groups.consumer_group import ConsumerGroup
from kquorum.broker.groups.consumer_protocol import ConsumerProtocol
from kquorum.broker.groups.shard import GroupShard
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.broker.consumer_stream import ConsumerStream

SEEDS = 12
STEPS = 120
Plant = Callable[[pytest.MonkeyPatch], None]


def no_op(*_: Any, **__: Any) -> None:
    """In the place of a safeguard."""


def partitions_pass_on_before_their_owner_gave_them_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "owner_epoch", lambda *_: -1)


def members_get_more_before_they_gave_up_what_they_are_to(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciliation, "owns_any", lambda *_: False)


def epochs_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consumer_protocol, "check_epoch", no_op)


def the_epoch_before_is_good_whatever_the_member_owns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consumer_protocol, "_is_part", lambda *_: True)


def other_topics_begin_no_epoch(patch: pytest.MonkeyPatch) -> None:
    noted = ConsumerProtocol.note_metadata

    def note(*arguments: Any) -> bool:
        noted(*arguments)
        return False

    patch.setattr(ConsumerProtocol, "note_metadata", note)


def changed_topics_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupShard, "topics_changed", no_op)


def members_have_no_session_after_a_fail_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerProtocol, "begin", no_op)


def a_revocation_may_take_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerProtocol, "_set_revocation", no_op)


def an_instance_that_is_here_gives_way(patch: pytest.MonkeyPatch) -> None:
    found = ConsumerProtocol.static_member

    def static_member(self: ConsumerProtocol, *arguments: Any, is_made: bool, is_classic: bool) -> Any:
        del is_classic
        return found(self, *arguments, is_made=is_made, is_classic=True)

    patch.setattr(ConsumerProtocol, "static_member", static_member)


def another_member_of_an_instance_is_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consumer_protocol, "check_instance", lambda known, *_: known)


def targets_of_members_that_left_stay(patch: pytest.MonkeyPatch) -> None:
    tombstones = consumer_protocol.member_tombstones
    patch.setattr(consumer_protocol, "member_tombstones", lambda *arguments: tombstones(*arguments)[::2])


def what_members_have_stays_when_they_leave(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ConsumerGroup, "_release", no_op)


def the_assignment_comes_more_often_than_its_interval(patch: pytest.MonkeyPatch) -> None:
    assign = ConsumerProtocol.assign

    def at_once(self: ConsumerProtocol, now_ms: int, change: Any, *arguments: Any) -> Any:
        change.group.assignment_timestamp_ms = 0
        return assign(self, now_ms, change, *arguments)

    patch.setattr(ConsumerProtocol, "assign", at_once)


def members_read_topics_that_are_others(patch: pytest.MonkeyPatch) -> None:
    """The assignor is given a topic of one member as everybody's."""

    def of_all(members: Any, partitions: Any) -> Any:
        everything = frozenset(topic for member in members for topic in member.topics)
        return assign_range([member._replace(topics=everything) for member in members], partitions)

    patch.setitem(ASSIGNORS, "uniform", of_all)  # type: ignore[arg-type]


def answers_leave_before_the_replicas_have_the_records(patch: pytest.MonkeyPatch) -> None:
    write = CoordinatorLog.write

    def answered(self: CoordinatorLog, now_ms: int, records: Any, done: Any, **options: Any) -> ErrorCode:
        error = write(self, now_ms, records, no_op, **options)
        if error is ErrorCode.none:
            done(ErrorCode.none)
        return error

    patch.setattr(CoordinatorLog, "write", answered)


def commits_of_any_epoch_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupShard, "_may_commit_as_consumer", lambda *_: ErrorCode.none)


PLANTS: tuple[Plant, ...] = (
    partitions_pass_on_before_their_owner_gave_them_up,
    members_get_more_before_they_gave_up_what_they_are_to,
    epochs_are_not_checked,
    the_epoch_before_is_good_whatever_the_member_owns,
    other_topics_begin_no_epoch,
    changed_topics_are_not_noticed,
    members_have_no_session_after_a_fail_over,
    a_revocation_may_take_for_ever,
    an_instance_that_is_here_gives_way,
    another_member_of_an_instance_is_not_fenced,
    targets_of_members_that_left_stay,
    what_members_have_stays_when_they_leave,
    the_assignment_comes_more_often_than_its_interval,
    members_read_topics_that_are_others,
    answers_leave_before_the_replicas_have_the_records,
    commits_of_any_epoch_count,
)


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_caught(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)

    def is_caught(seed: int) -> bool:
        try:
            ConsumerStream(seed).run(STEPS)
        # An assertion of the world, of the model, or of the coordinator itself.
        except (AssertionError, KeyError, ValueError, StopIteration, AttributeError):
            return True
        return False

    assert any(is_caught(seed) for seed in range(SEEDS)), f"{plant.__name__} survives {SEEDS} streams"
