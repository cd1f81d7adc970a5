"""How a member of a consumer group gets from the partitions that it has to those that it is to have (rules G7.26 to
G7.36).

A member first gives up what is not in its target; only then does it reach the target's epoch and get what other members
have released. So no partition has two owners.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from uuid import UUID

from kquorum.broker.groups.consumer_group import NO_EPOCH, ConsumerMember, MemberState
from kquorum.broker.groups.group_errors import GroupError
from kquorum.wire.consumer_group_records import Assigned, Target
from kquorum.wire.messages.error_codes import ErrorCode

Owned = Mapping[UUID, Collection[int]]
"""The partitions that a member says it has."""
_NONE: Mapping[int, int] = {}


def reconciled(
    member: ConsumerMember,
    target: Target,
    target_epoch: int,
    *,
    has_subscription_changed: bool,
    subscribed: Callable[[], Collection[UUID]],
    owner_epoch: Callable[[UUID, int], int],
    owned: Owned | None,
) -> ConsumerMember:
    """The member after its next step; `member` itself if it has to wait or has arrived.

    `subscribed` gives the ids of the topics that it reads, `owner_epoch` the epoch of the member that has a partition,
    or -1. `owned` is None if the member did not say what it has. Raises GroupError for a member in an unknown state.
    """

    def step() -> ConsumerMember:
        return _next(member, target, target_epoch, subscribed(), owner_epoch, owned)

    if member.state is MemberState.STABLE:
        if member.epoch != target_epoch:
            return step()
        return _without_unsubscribed(member, subscribed(), owned) if has_subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if not owns_any(member.pending_revocation, owned):
            return step()
        return _without_unsubscribed(member, subscribed(), owned) if has_subscription_changed else member
    if member.state is MemberState.UNKNOWN and (owned is None or any(owned.values())):
        raise GroupError(
            ErrorCode.fenced_member_epoch,
            f"The state of member {member.member_id} is unknown to this coordinator. The member must give up its "
            "partitions and join again.",
        )
    return step()


def owns_any(assigned: Assigned, owned: Owned | None) -> bool:
    """A member that does not say what it has may have all of it."""
    if owned is None:
        return True
    return any(
        partition in assigned.get(topic_id, _NONE)
        for topic_id, partitions in owned.items()
        for partition in partitions
    )


def _without_unsubscribed(
    member: ConsumerMember, subscribed: Collection[UUID], owned: Owned | None
) -> ConsumerMember:
    """Partitions of topics that the member does not read any more go at once, before there is a new target."""
    kept: dict[UUID, Mapping[int, int]] = {}
    pending: dict[UUID, Mapping[int, int]] = dict(member.pending_revocation)
    for topic_id, partitions in member.assigned.items():
        if topic_id in subscribed:
            kept[topic_id] = partitions
        else:
            pending[topic_id] = {**pending.get(topic_id, _NONE), **partitions}
    if len(kept) == len(member.assigned):
        return member
    if owns_any(pending, owned):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=kept,
            pending_revocation=pending,
        )
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _next(
    member: ConsumerMember,
    target: Target,
    target_epoch: int,
    subscribed: Collection[UUID],
    owner_epoch: Callable[[UUID, int], int],
    owned: Owned | None,
) -> ConsumerMember:
    kept: dict[UUID, dict[int, int]] = {}
    revoked: dict[UUID, dict[int, int]] = {}
    added: dict[UUID, list[int]] = {}
    has_unreleased = False
    for topic_id in {*target, *member.assigned}:
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        present = member.assigned.get(topic_id, _NONE)
        own_pending = member.pending_revocation.get(topic_id, _NONE)
        for partition, epoch in present.items():
            part = kept if partition in wanted else revoked
            part.setdefault(topic_id, {})[partition] = epoch
        for partition in wanted:
            if partition in present:
                continue
            # What this member itself is to give up is not another's (KAFKA-19449).
            if owner_epoch(topic_id, partition) == NO_EPOCH or partition in own_pending:
                added.setdefault(topic_id, []).append(partition)
            else:
                has_unreleased = True
    if revoked and owns_any(revoked, owned):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    for topic_id, partitions in added.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, target_epoch))
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=kept,
        pending_revocation={},
    )
