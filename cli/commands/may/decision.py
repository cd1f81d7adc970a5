"""Whether nodes may be stopped, restarted, removed, formatted or upgraded: the decision, without any I/O.

`decide` is a function of a `ClusterView` alone, so that the simulator can check it (`tests/simulation/may`): a yes
leads to no loss and no unavailability, as long as nothing else fails meanwhile; for the reasons of a no there are
worlds in which the refused action does harm. What is uncertain counts as a no: only a replica that fetches counts.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from kquorum.cli.commands.may.action import Action
from kquorum.wire.wording import counted

NO_LEADER: Final = -1


class Why(StrEnum):
    """The reasons for a no."""

    UNKNOWN_NODE = "unknown node"
    NO_COMMITS = "no commits"
    MAJORITY = "majority"
    STATIC_VOTER = "static voter"
    ONE_VOTER_AT_A_TIME = "one voter at a time"
    LEADER_OF_TWO = "leader of two"
    STATE_DIFFERS = "state differs"
    LAST_BROKER = "last broker"
    NO_LEADER_LEFT = "no leader left"
    BELOW_MIN_ISR = "below min.insync"
    LAST_COPY = "last copy"
    HAS_REPLICAS = "has replicas"
    REASSIGNMENT = "reassignment"
    LEADERLESS = "leaderless"
    LEADER_SILENT = "leader silent"
    UNDER_MIN_ISR = "under min.insync"
    OTHERS_NOT_WELL = "others not well"


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterView:
    """`is_alive`: it fetched while we looked on, or leads. `has_all`: its log has everything that the leader's log had
    when the looking began. `differs`: its metadata has another hash than the leader's."""

    node_id: int
    is_alive: bool
    has_all: bool
    differs: bool = False

    @property
    def counts(self) -> bool:
        """Whether it may be relied on for the next commit and the next election."""
        return self.is_alive and self.has_all and not self.differs


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """`is_alive`: it fetched metadata while we looked on. A broker that has just died is not fenced yet."""

    broker_id: int
    fenced: bool
    in_controlled_shutdown: bool
    is_alive: bool

    @property
    def serves(self) -> bool:
        return self.is_alive and not self.fenced and not self.in_controlled_shutdown


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """As the metadata have it; `min_isr` is the topic's effective min.insync.replicas."""

    topic: str
    partition_id: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition_id}"

    @property
    def needed(self) -> int:
        """How many replicas must be in sync for acks=all; a partition may have fewer replicas than the config says."""
        return max(1, min(self.min_isr, len(self.replicas)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """One moment of a cluster. `commits`: everything that the leader's log held when the looking began is committed."""

    leader_id: int
    leader_epoch: int
    commits: bool
    is_dynamic: bool
    voters: tuple[VoterView, ...]
    other_controllers: frozenset[int] = frozenset()
    brokers: Mapping[int, BrokerView] = field(default_factory=dict)
    partitions: Sequence[PartitionView] = ()

    @property
    def voter_ids(self) -> frozenset[int]:
        return frozenset(voter.node_id for voter in self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def serving(self, without: Collection[int] = ()) -> frozenset[int]:
        """The brokers that serve, without these nodes."""
        return frozenset(each.broker_id for each in self.brokers.values() if each.serves) - frozenset(without)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason for a no. `partitions` names some of those concerned, `count` says how many there are."""

    why: Why
    detail: str
    remedy: str
    may_pass_later: bool = True
    count: int = 0
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`order` is in which order to take the nodes; `risks` what the cluster cannot bear any more meanwhile."""

    action: Action
    nodes: tuple[int, ...]
    reasons: tuple[Reason, ...]
    risks: tuple[str, ...]
    order: tuple[int, ...]

    @property
    def is_yes(self) -> bool:
        return not self.reasons

    @property
    def may_become_yes(self) -> bool:
        """Whether waiting may help."""
        return all(reason.may_pass_later for reason in self.reasons)

    def as_json(self) -> dict[str, object]:
        return {"answer": "yes" if self.is_yes else "no"} | asdict(self)


NAMED: Final = 5
"""How many partitions a reason names."""


def decide(
    view: ClusterView, action: Action, nodes: Sequence[int], *, may_be_offline: Collection[str] = ()
) -> Verdict:
    """`may_be_offline` names topics that may be unavailable meanwhile; their records may not be lost."""
    nodes = tuple(dict.fromkeys(nodes))
    groups = [(node_id,) for node_id in nodes] if action.is_rolling else [nodes]
    reasons = list(_of_the_cluster(view, action, nodes))
    for group in groups:
        reasons += _of_voters(view, action, group)
        reasons += _of_brokers(view, action, group, frozenset(may_be_offline))
    return Verdict(
        action=action,
        nodes=nodes,
        reasons=tuple(reasons),
        risks=() if reasons else tuple(_risks(view, groups)),
        order=_order(view, action, nodes),
    )


def _order(view: ClusterView, action: Action, nodes: Sequence[int]) -> tuple[int, ...]:
    """A broker's controlled shutdown needs a controller, so brokers stop first. A rolling change begins with
    controllers. The leader of the quorum is the last of them: each earlier turn would move the leadership once more."""

    def place(node_id: int) -> tuple[bool, bool, int]:
        is_controller = node_id in view.voter_ids or node_id in view.other_controllers
        return is_controller is not action.is_rolling, node_id == view.leader_id, node_id

    return tuple(sorted(nodes, key=place))


# The quorum


def _of_the_cluster(view: ClusterView, action: Action, nodes: Sequence[int]) -> Iterable[Reason]:
    known = view.voter_ids | view.other_controllers | view.brokers.keys()
    if unknown := [node_id for node_id in nodes if node_id not in known]:
        yield Reason(
            why=Why.UNKNOWN_NODE,
            detail=f"{_named(unknown)}: no voter, registered controller or registered broker",
            remedy="name nodes of this cluster: `kquorum quorum status` and `kquorum brokers` list them",
            may_pass_later=False,
        )
    if not view.commits:
        yield Reason(
            why=Why.NO_COMMITS,
            detail=f"leader {view.leader_id} did not commit what its log held when we began to look",
            remedy="see `kquorum quorum status`: too few voters fetch, or a change of the voters is under way",
        )
    if differing := [voter.node_id for voter in view.voters if voter.differs]:
        yield Reason(
            why=Why.STATE_DIFFERS,
            detail=f"{_named(differing)} has other metadata than leader {view.leader_id} at the same offset",
            remedy="find out which one is wrong first: `kquorum quorum status` names the offsets and hashes",
        )
    if action is Action.UPGRADE:
        yield from _others_not_well(view, nodes)


def _others_not_well(view: ClusterView, nodes: Sequence[int]) -> Iterable[Reason]:
    """Else a fault of the new version could not be told from what was wrong before."""
    ill = [voter.node_id for voter in view.voters if not voter.counts and voter.node_id not in nodes]
    ill += [
        each.broker_id for each in view.brokers.values() if not each.serves and each.broker_id not in nodes
    ]
    if ill:
        yield Reason(
            why=Why.OTHERS_NOT_WELL,
            detail=f"{_named(sorted(set(ill)))} is down, fenced or behind",
            remedy="an upgrade begins with a cluster that is whole: start these nodes, or remove them",
        )


def _of_voters(view: ClusterView, action: Action, nodes: Collection[int]) -> Iterable[Reason]:
    leaving = [voter.node_id for voter in view.voters if voter.node_id in nodes]
    if not leaving:
        return
    if action is Action.REMOVE:
        yield from _of_removed_voter(view, leaving)
        return
    rest = [voter.node_id for voter in view.voters if voter.counts and voter.node_id not in nodes]
    if len(rest) < view.majority:
        yield Reason(
            why=Why.MAJORITY,
            detail=f"without {_named(leaving)}, {_voters_left(rest)}; {view.majority} of {len(view.voters)} are needed",
            remedy=_behind(view, nodes),
        )


def _of_removed_voter(view: ClusterView, leaving: Sequence[int]) -> Iterable[Reason]:
    if not view.is_dynamic:
        yield Reason(
            why=Why.STATIC_VOTER,
            detail=f"{_named(leaving)} votes by controller.quorum.voters (kraft.version 0)",
            remedy="make the quorum dynamic first: `kquorum quorum upgrade`",
            may_pass_later=False,
        )
        return
    if len(leaving) > 1:
        yield Reason(
            why=Why.ONE_VOTER_AT_A_TIME,
            detail=f"{_named(leaving)} vote, and voters change by one at a time (KIP-853)",
            remedy="remove one, and ask again",
            may_pass_later=False,
        )
        return
    rest = [voter for voter in view.voters if voter.node_id not in leaving]
    counting = [voter.node_id for voter in rest if voter.counts]
    needed = len(rest) // 2 + 1
    if len(counting) < needed or not rest:
        yield Reason(
            why=Why.MAJORITY,
            detail=f"afterwards there are {counted(len(rest), 'voter')}, and {needed} must be alive and caught up; "
            f"{_voters_left(counting)}",
            remedy=_behind(view, leaving),
        )
    elif len(rest) == 1 and view.leader_id in leaving:
        yield Reason(
            why=Why.LEADER_OF_TWO,
            detail=f"node {view.leader_id} leads one other voter; if it crashed during its removal, neither could lead",
            remedy=f"`kquorum quorum transfer-leadership {rest[0].node_id}` first",
        )


def _voters_left(rest: Sequence[int]) -> str:
    return f"{_named(rest)} would be left to vote" if rest else "no caught-up voter would be left"


def _behind(view: ClusterView, nodes: Collection[int]) -> str:
    others = [voter for voter in view.voters if voter.node_id not in nodes]
    silent = [voter.node_id for voter in others if not voter.is_alive]
    behind = [voter.node_id for voter in others if voter.is_alive and not voter.counts]
    parts = [f"start {_named(silent)}"] if silent else []
    parts += [f"wait until {_named(behind)} has caught up"] if behind else []
    return " and ".join(parts) or "add voters first: this quorum bears no failure"


# Partitions


def _of_brokers(
    view: ClusterView, action: Action, nodes: Collection[int], may_be_offline: frozenset[str]
) -> Iterable[Reason]:
    stopping = view.brokers.keys() & set(nodes)
    if not stopping:
        return
    if view.serving() & stopping and not view.serving(stopping):
        yield Reason(
            why=Why.LAST_BROKER,
            detail=f"no other broker than {_named(sorted(stopping))} serves clients",
            remedy="start another broker first",
        )
    found: dict[Why, list[PartitionView]] = {}
    for partition in view.partitions:
        why = _of_partition(view, action, stopping, partition)
        if why in _OF_AVAILABILITY and partition.topic in may_be_offline:
            why = None
        if why is not None:
            found.setdefault(why, []).append(partition)
    for why, partitions in found.items():
        text, remedy = _OF_PARTITIONS[why]
        yield Reason(
            why=why,
            detail=f"{counted(len(partitions), 'partition')} {text} ({_some(partitions)})",
            remedy=remedy,
            may_pass_later=why is not Why.HAS_REPLICAS,
            count=len(partitions),
            partitions=tuple(each.name for each in partitions[:NAMED]),
        )


_OF_AVAILABILITY: Final = frozenset(
    {Why.NO_LEADER_LEFT, Why.BELOW_MIN_ISR, Why.LEADERLESS, Why.LEADER_SILENT, Why.UNDER_MIN_ISR}
)
_OF_PARTITIONS: Final[Mapping[Why, tuple[str, str]]] = {
    Why.NO_LEADER_LEFT: (
        "would have no replica left that may lead",
        "add replicas or wait for the ISR; --may-be-offline TOPIC accepts it for a topic",
    ),
    Why.BELOW_MIN_ISR: (
        "would refuse acks=all: fewer in sync than min.insync.replicas",
        "wait until more replicas are in sync; --may-be-offline TOPIC accepts it for a topic",
    ),
    Why.LAST_COPY: (
        "would lose records: no other disk is known to hold them all",
        "wait until other replicas are in sync, or reassign the partition first",
    ),
    Why.HAS_REPLICAS: (
        "still has a replica there",
        "reassign these partitions to other brokers, or delete the topics",
    ),
    Why.REASSIGNMENT: ("is being reassigned", "wait for the reassignment, or cancel it"),
    Why.LEADERLESS: (
        "has no leader now, and the node holds a replica",
        "find out why it is offline: a replica of it may be needed to bring it back",
    ),
    Why.LEADER_SILENT: (
        "is led by a broker that fetches no metadata",
        "wait until the controller has fenced that broker, or it is back",
    ),
    Why.UNDER_MIN_ISR: (
        "is below min.insync.replicas now, and the node holds a replica",
        "start the missing brokers, and wait for the ISR",
    ),
}


def _of_partition(
    view: ClusterView, action: Action, stopping: Collection[int], partition: PartitionView
) -> Why | None:
    """Why these brokers must not go because of this partition; None if they may."""
    if not any(each in stopping for each in (*partition.replicas, *partition.elr, *partition.last_known_elr)):
        return None
    if action is Action.REMOVE:
        return Why.HAS_REPLICAS
    left = view.serving(stopping).intersection(partition.isr)
    if action is Action.FORMAT and not left:
        # Members of the ISR, or else of the lists of KIP-966, are all that is known to hold what was acknowledged.
        holders = {*partition.isr, *partition.elr} or {*partition.last_known_elr}
        if holders & set(stopping):
            return Why.LAST_COPY
    if partition.adding or partition.removing:
        return Why.REASSIGNMENT
    if partition.leader == NO_LEADER:
        return Why.LEADERLESS
    if partition.leader not in view.serving():
        return Why.LEADER_SILENT
    if len(view.serving().intersection(partition.isr)) < partition.needed:
        return Why.UNDER_MIN_ISR
    if not left:
        return Why.NO_LEADER_LEFT
    if len(left) < partition.needed:
        return Why.BELOW_MIN_ISR
    return None


def _some(partitions: Sequence[PartitionView]) -> str:
    names = ", ".join(each.name for each in partitions[:NAMED])
    return names + (", ..." if len(partitions) > NAMED else "")


# What a yes leaves


def _risks(view: ClusterView, groups: Iterable[Collection[int]]) -> Iterable[str]:
    for group in groups:
        leaving = [voter.node_id for voter in view.voters if voter.node_id in group]
        rest = [voter.node_id for voter in view.voters if voter.counts and voter.node_id not in group]
        if leaving and len(rest) - view.majority < 1:
            yield f"while {_named(leaving)} is away the quorum bears no further failure: {_named(rest)} must stay"
        if view.leader_id in leaving:
            yield f"node {view.leader_id} leads the quorum: another voter is elected, which takes milliseconds"
        stopping = view.brokers.keys() & set(group)
        tight = [
            partition
            for partition in view.partitions
            if stopping.intersection(partition.isr)
            and len(view.serving(stopping).intersection(partition.isr)) <= partition.needed
        ]
        if tight:
            yield (
                f"while {_named(sorted(stopping))} is away, {counted(len(tight), 'partition')} "
                f"bears no further failure ({_some(tight)})"
            )


def _named(nodes: Sequence[int]) -> str:
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))}" if nodes else "none"
