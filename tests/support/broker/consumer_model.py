"""A consumer group as KIP-848 describes it, written down a second time in the plainest form: sets of partitions, no
records, no indices. Random streams compare the coordinator with it.

The model does not compute targets: it takes the coordinator's, and judges them. It knows neither regular expressions
nor members of the classic protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

Place = tuple[str, int]
"""A topic by its name, and a partition."""


@dataclass
class PlainMember:
    topics: frozenset[str]
    instance: str | None = None
    epoch: int = 0
    previous: int = -1
    has: set[Place] = field(default_factory=set)
    gives: set[Place] = field(default_factory=set)
    waits: bool = False
    """For partitions that others still have."""
    rebalance_ms: int = 0
    session_ends_ms: int = 0
    giving_ends_ms: int | None = None


@dataclass(frozen=True)
class Beat:
    member_id: str
    epoch: int
    topics: frozenset[str] | None = None
    owned: frozenset[Place] | None = None
    instance: str | None = None
    says_timeout: bool = False
    """The rebalance timeout; a request with it, topics and partitions asks for the assignment."""


@dataclass
class PlainGroup:
    session_ms: int
    interval_ms: int
    rebalance_ms: int
    partitions: dict[str, int] = field(default_factory=dict)
    """Of each topic that exists."""
    exists: bool = False
    epoch: int = 1
    assigned_epoch: int = 1
    computed_ms: int = 0
    members: dict[str, PlainMember] = field(default_factory=dict)
    targets: dict[str, set[Place]] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    """The topics as they were when the group last looked."""
    looks: bool = True
    """Whether it looks at the next heartbeat."""

    # What happens

    def change_topic(self, topic: str, partitions: int) -> None:
        self.partitions[topic] = partitions
        if topic in self.read():
            self.looks = True

    def fail_over(self, now_ms: int) -> None:
        self.looks = True
        for member in self.members.values():
            member.session_ends_ms = now_ms + self.session_ms
            member.giving_ends_ms = now_ms + member.rebalance_ms if member.gives else None

    def pass_time(self, now_ms: int) -> None:
        while due := [
            (deadline, member_id)
            for member_id, member in self.members.items()
            for deadline in (member.session_ends_ms, member.giving_ends_ms)
            if deadline is not None and deadline <= now_ms
        ]:
            self.remove(min(due)[1])

    def read(self) -> set[str]:
        return {topic for member in self.members.values() for topic in member.topics}

    def remove(self, member_id: str) -> None:
        del self.members[member_id]
        self.targets.pop(member_id, None)
        self.epoch += 1
        self.known = self.seen()

    def seen(self) -> dict[str, int]:
        return {topic: self.partitions[topic] for topic in self.read() if topic in self.partitions}

    def of_instance(self, instance: str) -> str | None:
        return next((each for each, member in self.members.items() if member.instance == instance), None)

    # Requests

    def refusal(self, beat: Beat) -> str | None:
        """The error of a heartbeat; None if it is taken."""
        joins = beat.epoch == 0
        if not self.exists and not joins:
            return "group_id_not_found"
        if beat.instance is not None:
            known = self.of_instance(beat.instance)
            if joins:
                away = known is None or self.members[known].epoch == -2
                return None if away else "unreleased_instance_id"
            if known is None:
                return "unknown_member_id"
            if known != beat.member_id:
                return "fenced_instance_id"
        elif beat.member_id not in self.members and not joins:
            return "unknown_member_id"
        if joins or beat.epoch < 0:
            return None
        member = self.members[beat.member_id]
        if beat.epoch == member.epoch:
            return None
        lost_answer = (
            beat.epoch < member.epoch
            and beat.epoch == member.previous
            and beat.owned is not None
            and beat.owned <= member.has
        )
        return None if lost_answer else "fenced_member_epoch"

    def leave(self, beat: Beat) -> None:
        if beat.epoch == -1:
            self.remove(beat.member_id)
            return
        member = self.members[beat.member_id]
        member.epoch, member.gives = -2, set()

    def beat(
        self, now_ms: int, beat: Beat, targets: Mapping[str, AbstractSet[Place]]
    ) -> tuple[int, set[Place] | None]:
        """A heartbeat that is taken: the epoch and the assignment of the answer. `targets` are the coordinator's after
        it."""
        self.exists = True
        member = self._found(beat)
        had = set(member.has)
        changed = beat.topics is not None and beat.topics != member.topics
        if beat.topics is not None:
            member.topics = beat.topics
        if changed or self.looks:
            seen = self.seen()
            if changed or seen != self.known:
                self.epoch += 1
            self.known, self.looks = seen, False
        can_compute = self.computed_ms == 0 or now_ms >= self.computed_ms + self.interval_ms
        if self.epoch > self.assigned_epoch and can_compute:
            self.assigned_epoch, self.computed_ms = self.epoch, now_ms
            self.targets = {each: set(target) for each, target in targets.items()}
            self.check_targets()
        self._step(now_ms, beat, member, changed)
        member.session_ends_ms = now_ms + self.session_ms
        is_full = beat.says_timeout and beat.topics is not None and beat.owned is not None
        tells = beat.epoch == 0 or is_full or member.has != had
        return member.epoch, set(member.has) if tells else None

    def _found(self, beat: Beat) -> PlainMember:
        known = None if beat.instance is None else self.of_instance(beat.instance)
        if known is not None and beat.epoch == 0:
            former = self.members.pop(known)
            former.epoch = former.previous = 0
            self.targets[beat.member_id] = self.targets.pop(known, set())
            self.members[beat.member_id] = former
            former.giving_ends_ms = None
        member = self.members.get(beat.member_id)
        if member is None:
            # The subscription of a new member is a change, unless it is empty.
            member = PlainMember(frozenset(), beat.instance, rebalance_ms=self.rebalance_ms)
            self.members[beat.member_id] = member
        return member

    def _step(self, now_ms: int, beat: Beat, member: PlainMember, changed: bool) -> None:
        target = {
            place
            for place in self.targets.get(beat.member_id, set())
            if place[0] in member.topics and place[0] in self.partitions
        }
        owned = beat.owned

        def still_has(places: set[Place]) -> bool:
            return bool(places) and (owned is None or bool(owned & places))

        is_settled = member.epoch == self.assigned_epoch and not member.gives and not member.waits
        if is_settled and not changed:
            return
        if (member.gives and still_has(member.gives)) or is_settled:
            if not changed:
                return
            dropped = {
                place
                for place in member.has
                if place[0] not in member.topics or place[0] not in self.partitions
            }
            if not dropped:
                return
            member.previous = member.epoch
            member.has -= dropped
            if still_has(member.gives | dropped):
                member.gives |= dropped
        else:
            self._reach(member, target, still_has)
        if not member.gives:
            member.giving_ends_ms = None
        else:
            member.giving_ends_ms = now_ms + member.rebalance_ms

    def _reach(self, member: PlainMember, target: set[Place], still_has: object) -> None:
        assert callable(still_has)
        revoked = member.has - target
        others = {
            place
            for other in self.members.values()
            if other is not member
            for place in other.has | other.gives
        }
        member.previous = member.epoch
        member.has &= target
        if still_has(revoked):
            member.gives, member.waits = revoked, False
            return
        member.epoch = self.assigned_epoch
        member.gives = set()
        member.has |= target - others
        member.waits = bool(target & others)

    # Judging

    def check_targets(self) -> None:
        """Each partition that is read is one member's, and no member has two more than another that could have one of
        them."""
        given = [place for target in self.targets.values() for place in target]
        read = {
            (topic, index)
            for topic in self.read()
            if topic in self.partitions
            for index in range(self.partitions[topic])
        }
        assert len(given) == len(set(given)), "a partition is given to two members"
        assert set(given) == read, "not what is read is given"
        for member_id, target in self.targets.items():
            for other_id, other in self.members.items():
                could_have = any(topic in other.topics for topic, _ in target)
                less = len(target) - len(self.targets.get(other_id, ()))
                assert not could_have or less < 2, f"{member_id} has too many beside {other_id}"

    def owners(self) -> dict[Place, str]:
        found: dict[Place, str] = {}
        for member_id, member in self.members.items():
            for place in member.has | member.gives:
                assert place not in found, f"{place} has two owners"
                found[place] = member_id
        return found
