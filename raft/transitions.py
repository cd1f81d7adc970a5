"""Which change of role is legal: the only place that says so (kraft-semantics A4.1; KIP-595, KIP-996).

A move is named by the role that is left, the role that is taken, and whether the epoch stays. What is not
listed raises: an illegal move is a bug of ours, and going on could elect two leaders.
"""

from typing import Final

SAME_EPOCH: Final = frozenset(
    {
        ("unattached", "unattached"),  # an observer lost its leader and looks for it again
        ("unattached", "prospective"),
        ("unattached", "follower"),
        ("prospective", "unattached"),
        ("prospective", "follower"),
        ("candidate", "leader"),
        ("candidate", "follower"),
        ("candidate", "prospective"),
        ("follower", "follower"),  # the same leader made itself known again
        ("follower", "prospective"),
        ("follower", "unattached"),
        ("leader", "resigned"),
    }
)

HIGHER_EPOCH: Final = frozenset(
    {
        (source, "unattached")
        for source in ("unattached", "prospective", "candidate", "leader", "follower", "resigned")
    }
    | {
        (source, "follower")
        for source in ("unattached", "prospective", "candidate", "leader", "follower", "resigned")
    }
    | {("prospective", "candidate")}
)


class IllegalTransitionError(AssertionError):
    """A change of role that no rule allows."""


def check_transition(source: str, target: str, *, source_epoch: int, target_epoch: int) -> None:
    """Raise IllegalTransitionError unless `source` may become `target`."""
    if target_epoch < source_epoch:
        raise IllegalTransitionError(
            f"{source} of epoch {source_epoch} cannot go back to epoch {target_epoch}"
        )
    allowed = SAME_EPOCH if target_epoch == source_epoch else HIGHER_EPOCH
    if (source, target) not in allowed:
        raise IllegalTransitionError(
            f"{source} of epoch {source_epoch} cannot become {target} of epoch {target_epoch}"
        )
