"""A fake of the quorum status that the gRPC service reads."""

from collections.abc import Iterable, Iterator

from kquorum.raft.elections_history import LeaderChangeAt, RoleEvent

EVENTS = tuple(
    RoleEvent(node_id=7, timestamp_ms=1000 + epoch, role="leader", epoch=epoch, cause="x") for epoch in (1, 2)
)


CHANGES = (
    LeaderChangeAt(offset=0, epoch=1, leader_id=7, timestamp_ms=1001, voters=(7, 8), granting_voters=(7, 8)),
    LeaderChangeAt(offset=9, epoch=2, leader_id=7, timestamp_ms=1002, previous_ms=900),
)


class FakeQuorum:
    node_id = 7
    leader_epoch = 2

    def __init__(self, refusal: Exception | None = None, damage: Exception | None = None) -> None:
        self.targets: list[int] = []
        self._refusal = refusal
        self._damage = damage

    async def transfer_leadership(self, target_id: int) -> None:
        if self._refusal is not None:
            raise self._refusal
        self.targets.append(target_id)

    def role_events(self) -> Iterable[RoleEvent]:
        return EVENTS

    def leader_changes(self, from_epoch: int) -> Iterator[LeaderChangeAt]:
        for change in CHANGES:
            if change.epoch >= from_epoch:
                yield change
        if self._damage is not None:
            raise self._damage
