"""Which change of role is legal: the only place that says so (kraft-semantics A4.1; KIP-595, KIP-853, KIP-996).

A move is named by the role that is left, the role that is taken, and whether the epoch stays. What is not
listed raises: an illegal move is a bug of ours, and going on could elect two leaders.
"""

from dataclasses import dataclass
from typing import Final, Literal

ROLES: Final = ("unattached", "prospective", "candidate", "leader", "follower", "resigned")


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal move; `trigger` says what brings it about, for the reader of docs/raft-roles.md."""

    source: str
    target: str
    epoch: Literal["same", "higher"]
    trigger: str


TRANSITIONS: Final = (
    Transition("unattached", "prospective", "same", "a voter's election timeout ran out"),
    Transition(
        "unattached", "follower", "same", "the leader of the epoch became known, and where it listens"
    ),
    Transition(
        "prospective", "candidate", "higher", "a majority would vote for it, or a voter knows no pre-vote"
    ),
    Transition("prospective", "unattached", "same", "pre-vote lost or timed out, no leader known"),
    Transition(
        "prospective", "follower", "same", "pre-vote lost or timed out with the leader known, or it spoke up"
    ),
    Transition("candidate", "leader", "same", "a majority voted for it"),
    Transition("candidate", "prospective", "same", "election timed out"),
    Transition("candidate", "follower", "same", "another candidate won the epoch"),
    Transition("follower", "prospective", "same", "a voter's fetch timeout ran out, or its leader left"),
    Transition("follower", "unattached", "same", "an observer's fetch timeout ran out"),
    Transition(
        "leader", "resigned", "same", "shutdown, no majority fetched, hand-over, or its own removal committed"
    ),
    *(
        Transition(role, "unattached", "higher", "a peer is in a newer epoch")
        for role in ROLES
        if role != "resigned"
    ),
    Transition("resigned", "unattached", "higher", "a peer is in a newer epoch, or nobody took over in time"),
    *(Transition(role, "follower", "higher", "a peer named the leader of a newer epoch") for role in ROLES),
)

_LEGAL: Final = frozenset((move.source, move.target, move.epoch) for move in TRANSITIONS)


class IllegalTransitionError(AssertionError):
    """A change of role that no rule allows."""


def check_transition(source: str, target: str, *, source_epoch: int, target_epoch: int) -> None:
    """Raise IllegalTransitionError unless `source` may become `target`."""
    if target_epoch < source_epoch:
        raise IllegalTransitionError(
            f"{source} of epoch {source_epoch} cannot go back to epoch {target_epoch}"
        )
    if (source, target, "same" if target_epoch == source_epoch else "higher") not in _LEGAL:
        raise IllegalTransitionError(
            f"{source} of epoch {source_epoch} cannot become {target} of epoch {target_epoch}"
        )
