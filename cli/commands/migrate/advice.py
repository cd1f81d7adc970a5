"""Which controller may be exchanged next, and why not yet. Pure: `observing` brings the view.

A controller is exchanged in its place: the program is stopped, and the other one goes on with the same folder, node id
and addresses. So the voters stay as they are, with static and with dynamic voters, and the way back is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kquorum.metadata.features import SUPPORTED_FEATURES
from kquorum.wire.wording import counted

# A voter that fetches is behind by what was written since; more than this is called behind.
MAX_LAG = 1_000
Levels = Mapping[str, tuple[int, int]]


class Program(StrEnum):
    """What runs a controller."""

    KQUORUM = "kquorum"
    KAFKA = "kafka"
    NONE = "no answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterView:
    """A voter as it was seen. `supported` are the levels of features that its program runs, if it answered."""

    node_id: int
    address: str
    program: Program
    is_leader: bool = False
    is_alive: bool = False
    lag: int | None = None
    supported: Levels = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether a majority may be made with it."""
        return self.program is not Program.NONE and (
            self.is_leader or (self.is_alive and self.lag is not None and self.lag <= MAX_LAG)
        )

    @property
    def trouble(self) -> str | None:
        """Why it does not count."""
        if self.program is Program.NONE:
            return f"controller {self.node_id} ({self.address}) does not answer"
        if self.counts:
            return None
        if not self.is_alive:
            return f"controller {self.node_id} does not follow the leader"
        behind = "an unknown number of records" if self.lag is None else counted(self.lag, "record")
        return f"controller {self.node_id} is {behind} behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationView:
    """The quorum as its leader describes it. `finalized` are the levels of features in force."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[VoterView, ...]
    finalized: Mapping[str, int] = field(default_factory=dict)

    def voter(self, node_id: int) -> VoterView | None:
        return next((each for each in self.voters if each.node_id == node_id), None)

    def order(self, target: Program) -> tuple[VoterView, ...]:
        """The voters that are still to be exchanged: those that follow by their ids, then the leader."""
        left = (each for each in self.voters if each.program is not target)
        return tuple(sorted(left, key=lambda each: (each.is_leader, each.node_id)))


def reasons_against(view: MigrationView, target: Program, node_id: int) -> tuple[str, ...]:
    """Why this controller must not be stopped now, to go on as `target`; none if it may be."""
    voter = view.voter(node_id)
    if voter is None:
        ids = ", ".join(str(each.node_id) for each in view.voters)
        return (f"node {node_id} is no voter of this quorum (voters: {ids})",)
    if voter.program is target:
        return (f"controller {node_id} runs {target} already",)
    others = [each for each in view.voters if each.node_id != node_id]
    reasons = [each.trouble for each in others if each.trouble is not None]
    majority = len(view.voters) // 2 + 1
    counting = sum(each.counts for each in others)
    # With one voter or two there is no majority without it: `risks_of` says so.
    if len(others) >= majority > counting:
        reasons.append(
            f"without it {counting} of {len(view.voters)} voters are well, and {majority} are needed to commit"
        )
    return (*reasons, *_levels_against(view, target))


def _levels_against(view: MigrationView, target: Program) -> tuple[str, ...]:
    supported = levels_of(view, target)
    if supported is None:
        return ()
    found = []
    for name, level in sorted(view.finalized.items()):
        low, high = supported.get(name, (0, 0))
        if not low <= level <= high:
            found.append(
                f"the cluster has finalized {name} {level}, and {target} runs the levels {low} to {high}: "
                f"run a version that knows the level, or lower it (`kquorum features downgrade`)"
            )
    return tuple(found)


def levels_of(view: MigrationView, program: Program) -> Levels | None:
    """What the controllers of this program support, as those that answer say; else what this version of kquorum does,
    and None for Kafka, whose release is not known then."""
    answered = (each.supported for each in view.voters if each.program is program and each.supported)
    return next(answered, SUPPORTED_FEATURES if program is Program.KQUORUM else None)


def risks_of(view: MigrationView, target: Program) -> tuple[str, ...]:
    """What an operator should know before the next exchange."""
    risks = []
    if len(view.voters) == 1:
        risks.append("the quorum has one voter: nothing is committed while it is exchanged, and brokers wait")
    elif len(view.voters) == 2:
        risks.append("the quorum has two voters: nothing is committed while one of them is exchanged")
    elif len(view.voters) - 1 == len(view.voters) // 2 + 1:
        risks.append("while a controller is exchanged, no other may fail")
    if levels_of(view, target) is None:
        risks.append(
            f"no controller of {target} answers yet, so its feature levels were not compared with the cluster's: "
            + ", ".join(f"{name} {level}" for name, level in sorted(view.finalized.items()))
        )
    return tuple(risks)
