"""What is known of a quorum without a leader: who answers, which leader and epoch each knows, and what is needed."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cli.cluster_addresses import KnownControllers
from cli.question import Question, Unanswered
from cli.quorum_status import leader_known_to
from node.config.addresses import HostPort
from wire.wording import counted

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerAnswer:
    """One controller; leader and epoch are None while it knows none, or does not answer. `reason` says why not."""

    node_id: int | None
    address: str
    answers: bool
    leader_id: int | None = None
    leader_epoch: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderless:
    """The controllers that were asked, and which nodes vote (none where that is not known)."""

    controllers: tuple[ControllerAnswer, ...]
    voters: frozenset[int] = frozenset()

    def as_json(self) -> dict[str, object]:
        return {"controllers": [asdict(controller) for controller in self.controllers], "needs": self.needs}

    @property
    def needs(self) -> str:
        """What has to happen, in a clause."""
        silent = [_name(controller) for controller in self.controllers if not controller.answers]
        known = [controller for controller in self.controllers if controller.node_id is not None]
        unasked = sorted(self.voters - {controller.node_id for controller in known})
        if not known and len(silent) == len(self.controllers):
            return f"start {' or '.join(silent)}, or ask a controller where it is a broker: those only pass this on"
        if unasked:
            named = " and ".join(f"node {node_id}" for node_id in unasked)
            started = f"start {' or '.join(silent)}, and " if silent else ""
            return f"a majority of the voters must be alive: {started}see whether {named} runs (not asked from here)"
        if not silent:
            return (
                "all answer, and none leads: an election is under way, or they do not reach each other, or too few of "
                "them are voters (in a dynamic quorum a node whose disk was replaced is none: its kquorum.log says so)"
            )
        if not self.voters:
            return (
                f"a majority of the voters must be alive: start {' or '.join(silent)} (who votes: `kquorum log dump "
                "FOLDER --snapshots --type KRaftVoters`)"
            )
        silent = [
            _name(controller)
            for controller in known
            if not controller.answers and controller.node_id in self.voters
        ]
        alive = len(self.voters) - len(silent)
        majority = len(self.voters) // 2 + 1
        told = f"{alive} of {counted(len(self.voters), 'voter')} alive"
        if alive >= majority:
            return f"{told}, which is enough: an election is under way, or they do not reach each other"
        missing = majority - alive
        which = " or ".join(silent) if missing == 1 else f"{missing} of {', '.join(silent)}"
        return f"{told}, {majority} needed: start {which}"

    @property
    def summary(self) -> str:
        """For the line on standard error."""
        told = "; ".join(_in_words(controller) for controller in self.controllers if controller.answers)
        silent = ", ".join(_name(controller) for controller in self.controllers if not controller.answers)
        told += "; " if told and silent else ""
        told += f"no answer from {silent}" if silent else ""
        return f"the quorum has no leader that can be reached: {told}; {self.needs}"


def leaderless_of(error: Unanswered, known: KnownControllers) -> Leaderless:
    question = error.question
    addresses = dict.fromkeys((*known.ids, *question.refused, *question.silent))
    asked = [address for address in addresses if address in question.refused or address in question.silent]
    answers = [_answer(address, question, known) for address in asked]
    answers.sort(key=lambda answer: (answer.node_id is None, answer.node_id or 0))
    return Leaderless(controllers=tuple(answers), voters=known.voters)


def _answer(address: HostPort, question: Question, known: KnownControllers) -> ControllerAnswer:
    node_id = known.ids.get(address)
    if address not in question.refused:
        reason = question.silent[address].removeprefix(f"cannot connect to {address}: ")
        reason = reason.removeprefix(f"{address} ")
        return ControllerAnswer(node_id=node_id, address=str(address), answers=False, reason=reason)
    leader_id, epoch = leader_known_to(question.refused[address])
    return ControllerAnswer(
        node_id=node_id,
        address=str(address),
        answers=True,
        leader_id=leader_id if leader_id >= 0 else None,
        leader_epoch=epoch if epoch >= 0 else None,
    )


def controllers_table(controllers: Iterable[ControllerAnswer]) -> "Table":
    from cli.output import make_table

    rows = [
        (
            controller.node_id,
            controller.address,
            "alive" if controller.answers else "silent",
            _leader(controller),
            controller.leader_epoch,
            controller.reason,
        )
        for controller in controllers
    ]
    return make_table("no leader", ("#node", "address", "state", "#leader", "#epoch", "~reason"), rows)


def _leader(controller: ControllerAnswer) -> str:
    if not controller.answers:
        return ""
    return "none" if controller.leader_id is None else str(controller.leader_id)


def _name(controller: ControllerAnswer) -> str:
    return controller.address if controller.node_id is None else f"node {controller.node_id}"


def _in_words(controller: ControllerAnswer) -> str:
    if controller.leader_id is None and controller.leader_epoch is None:
        return f"{_name(controller)} answers, but does not lead"
    epoch = "" if controller.leader_epoch is None else f" in epoch {controller.leader_epoch}"
    follows = "no leader" if controller.leader_id is None else f"node {controller.leader_id}"
    return f"{_name(controller)} answers and follows {follows}{epoch}"
