"""Consumer groups as the committed part of the log has them: what lists and descriptions show (rule G2.4)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kquorum.broker.groups.consumer_group import (
    FIRST_EPOCH,
    NO_TARGET,
    ConsumerGroup,
    ConsumerGroupState,
    ConsumerMember,
    state_of,
)
from kquorum.wire.consumer_group_records import Target
from kquorum.wire.offsets_records import RecordType

_EPOCH: Final = RecordType.CONSUMER_GROUP_METADATA
_TARGET_EPOCH: Final = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA
_TARGET: Final = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
_OF_MEMBERS: Final = frozenset(
    {
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    }
)

Part = int | ConsumerMember | Target | None
"""What a record left: an epoch, a member or a target; None if the record removed it."""


@dataclass(slots=True)
class CommittedGroup:
    group_id: str
    epoch: int = FIRST_EPOCH
    assignment_epoch: int = FIRST_EPOCH
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)

    @property
    def state(self) -> ConsumerGroupState:
        return state_of(self.epoch, self.assignment_epoch, self.members)

    @property
    def assignor(self) -> str | None:
        """The one that most members ask for."""
        votes = Counter(each.assignor for each in self.members.values() if each.assignor is not None)
        return min(votes, key=lambda name: (-votes[name], name)) if votes else None

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)


class CommittedGroups:
    """Follows the newest state when the high watermark passes a record."""

    def __init__(self) -> None:
        self._groups: dict[str, CommittedGroup] = {}
        self._waiting: deque[tuple[int, RecordType, str, str, Part]] = deque()

    @property
    def all(self) -> Mapping[str, CommittedGroup]:
        return self._groups

    def note(self, offset: int, kind: RecordType, name: str, group: ConsumerGroup, *, is_gone: bool) -> None:
        """A record at `offset` was replayed on the newest state. `is_gone`: with it the whole group went."""
        if kind is _EPOCH:
            part: Part = None if is_gone else group.epoch
        elif kind is _TARGET_EPOCH:
            part = group.assignment_epoch
        elif kind is _TARGET:
            part = group.targets.get(name)
        elif kind in _OF_MEMBERS:
            part = group.members.get(name)
        else:
            return
        self._waiting.append((offset, kind, group.group_id, name, part))

    def commit_to(self, high_watermark: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] < high_watermark:
            _, kind, group_id, name, part = waiting.popleft()
            if kind is _EPOCH and part is None:
                self._groups.pop(group_id, None)
                continue
            group = self._groups.get(group_id)
            if group is None:
                group = self._groups[group_id] = CommittedGroup(group_id)
            if isinstance(part, ConsumerMember):
                group.members[name] = part
            elif kind in _OF_MEMBERS:
                group.members.pop(name, None)
            elif kind is _EPOCH:
                assert isinstance(part, int)
                group.epoch = part
            elif kind is _TARGET_EPOCH:
                assert isinstance(part, int)
                group.assignment_epoch = part
            elif part is None:
                group.targets.pop(name, None)
            else:
                assert not isinstance(part, int)
                group.targets[name] = part
