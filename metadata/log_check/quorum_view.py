"""What the control records of a log say about its quorum, as of one offset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from metadata.image.state_change import Action, FieldChange, Plain, StateChange, StateKind
from wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
    VotersRecord,
)
from wire.uuids import uuid_to_text


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumView:
    """`leader_id` is None before the first leader change seen; `voter_ids` are the last leader's, `voters` a dynamic
    quorum's."""

    leader_epoch: int = 0
    leader_id: int | None = None
    voter_ids: tuple[int, ...] = ()
    kraft_version: int = 0
    voters: VotersRecord | None = None

    def after(self, controls: Sequence[ControlRecord], epoch: int) -> "QuorumView":
        """The view after one control batch of this leader epoch."""
        view = replace(self, leader_epoch=epoch)
        for control in controls:
            if isinstance(control, LeaderChangeMessage):
                ids = tuple(sorted(voter.voter_id for voter in control.voters))
                view = replace(view, leader_id=control.leader_id, voter_ids=ids)
            elif isinstance(control, KRaftVersionRecord):
                view = replace(view, kraft_version=control.k_raft_version)
            elif isinstance(control, VotersRecord):
                view = replace(view, voters=control)
        return view

    @property
    def voter_texts(self) -> tuple[str, ...]:
        """`1` for a static voter, `1@<directory id>` for one of a dynamic quorum."""
        if self.voters is None:
            return tuple(str(voter_id) for voter_id in self.voter_ids)
        return tuple(
            f"{voter.voter_id}@{uuid_to_text(voter.voter_directory_id)}"
            for voter in sorted(self.voters.voters, key=lambda voter: voter.voter_id)
        )


def diff_quorums(before: QuorumView, after: QuorumView) -> Iterator[StateChange]:
    """One change with the fields that differ; nothing where none does.

    A view that began with a snapshot may not know the leader or the static voters; these are no differences then.
    """
    pairs: list[tuple[str, Plain, Plain]] = [
        ("leader_epoch", before.leader_epoch, after.leader_epoch),
        ("kraft.version", before.kraft_version, after.kraft_version),
    ]
    if after.leader_id is not None:
        pairs.insert(0, ("leader", before.leader_id, after.leader_id))
    if after.voter_texts:
        pairs.append(("voters", before.voter_texts, after.voter_texts))
    yield from _change(pairs)


def diff_voters(before: QuorumView, after: QuorumView) -> Iterator[StateChange]:
    """kraft.version and a dynamic quorum's voters only: that is what a snapshot holds of the quorum."""
    old, new = (_dynamic_voters(view) for view in (before, after))
    if before.kraft_version != after.kraft_version or old != new:
        yield from _change(
            [
                ("kraft.version", before.kraft_version, after.kraft_version),
                ("voters", before.voter_texts, after.voter_texts),
            ]
        )


def _dynamic_voters(view: QuorumView) -> tuple[Voter, ...]:
    if view.voters is None or not view.kraft_version:
        return ()
    return tuple(sorted(view.voters.voters, key=lambda voter: voter.voter_id))


def _change(pairs: list[tuple[str, Plain, Plain]]) -> Iterator[StateChange]:
    fields = tuple(FieldChange(name, old, new) for name, old, new in pairs if old != new)
    if fields:
        yield StateChange(StateKind.QUORUM, Action.CHANGED, "quorum", (), fields)
