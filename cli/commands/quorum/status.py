"""`quorum status`: the table of replicas, or, without a leader, what each controller knows and what is needed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from kquorum.cli.clients.addresses import KnownControllers
from kquorum.cli.clients.cluster_client import PendingRequest, Unanswered
from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag, leader_known_to
from kquorum.node.config.addresses import HostPort
from kquorum.wire.message_schema import Response
from kquorum.wire.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from kquorum.cli.failures import CliError


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
        text = f"{alive} of {counted(len(self.voters), 'voter')} alive"
        if alive >= majority:
            return f"{text}, which is enough: an election is under way, or they do not reach each other"
        missing = majority - alive
        which = " or ".join(silent) if missing == 1 else f"{missing} of {', '.join(silent)}"
        return f"{text}, {majority} needed: start {which}"

    @property
    def summary(self) -> str:
        """For the line on standard error."""
        text = "; ".join(_in_words(controller) for controller in self.controllers if controller.answers)
        silent = ", ".join(_name(controller) for controller in self.controllers if not controller.answers)
        text += "; " if text and silent else ""
        text += f"no answer from {silent}" if silent else ""
        return f"the quorum has no leader that can be reached: {text}; {self.needs}"


def leaderless_of(error: Unanswered, known: KnownControllers) -> Leaderless:
    pending = error.pending
    addresses = dict.fromkeys((*known.ids, *pending.refused, *pending.silent))
    asked = [address for address in addresses if address in pending.refused or address in pending.silent]
    answers = [_answer(address, pending, known) for address in asked]
    answers.sort(key=lambda answer: (answer.node_id is None, answer.node_id or 0))
    return Leaderless(controllers=tuple(answers), voters=known.voters)


def _answer(
    address: HostPort, pending: PendingRequest[Response], known: KnownControllers
) -> ControllerAnswer:
    node_id = known.ids.get(address)
    if address not in pending.refused:
        reason = pending.silent[address].removeprefix(f"cannot connect to {address}: ")
        reason = reason.removeprefix(f"{address} ")
        return ControllerAnswer(node_id=node_id, address=str(address), answers=False, reason=reason)
    leader_id, epoch = leader_known_to(pending.refused[address])
    return ControllerAnswer(
        node_id=node_id,
        address=str(address),
        answers=True,
        leader_id=leader_id if leader_id >= 0 else None,
        leader_epoch=epoch if epoch >= 0 else None,
    )


def controllers_table(controllers: Iterable[ControllerAnswer]) -> "Table":
    from kquorum.cli.output import make_table

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


def no_leader(
    error: "Unanswered", known: "KnownControllers", *, as_json: bool, asks_brokers: bool
) -> "CliError":
    """Shows what each controller knows, and answers with the error that says what is needed."""
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.cli.output import print_json, show_table

    if error.status is ExitStatus.FAILED:
        return error
    if asks_brokers:
        remedy = "brokers pass this question on; ask the controllers themselves with --bootstrap-controller"
        return CliError(f"{error}; {remedy}", status=ExitStatus.UNREACHABLE)
    found = leaderless_of(error, known)
    if as_json:
        print_json({"error": found.summary, "exit_status": int(ExitStatus.UNREACHABLE), **found.as_json()})
    else:
        show_table(controllers_table(found.controllers))
    return CliError(found.summary, status=ExitStatus.UNREACHABLE, is_in_json=True)


def quorum_table(found: QuorumStatus, now_ms: int) -> "Table":
    """A row for each replica; the title says who leads."""
    from kquorum.cli.output import make_table

    title = f"leader {found.leader_id}, epoch {found.leader_epoch}, high watermark {found.high_watermark:,}"
    replicas = (*found.voters, *found.observers)
    ids = [replica.replica_id for replica in replicas]
    roles = [*("leader" if node.replica_id == found.leader_id else "voter" for node in found.voters)]
    roles += ["observer"] * len(found.observers)
    rows = [_row(replica, role, now_ms) for replica, role in zip(replicas, roles, strict=True)]
    columns = ["#node", "role", "state", "#log end", "#lag", "#last\nfetch", "#last\ncaught up"]
    if any(replica.state is not None for replica in replicas):
        columns.append("metadata\nhash")
        states = (replica.state.short if replica.state is not None else "unknown" for replica in replicas)
        rows = [(*row, state) for row, state in zip(rows, states, strict=True)]
    if len(set(ids)) < len(ids):  # a node whose disk was replaced: only the directory id tells old from new
        columns.append("directory id")
        rows = [(*row, replica.directory_id) for row, replica in zip(rows, replicas, strict=True)]
    return make_table(title, columns, rows, spare=("#last\ncaught up", "#last\nfetch", "metadata\nhash"))


def silent_voters(found: QuorumStatus) -> str | None:
    """A line about the voters that do not fetch; None when all do."""
    silent = [voter for voter in found.voters if voter.alive is False]
    if not silent:
        return None
    named = ", ".join(
        str(voter.replica_id) + (f" (directory {voter.directory_id})" if voter.directory_id else "")
        for voter in silent
    )
    majority = len(found.voters) // 2 + 1
    spare = len(found.voters) - len(silent) - majority
    rest = f"{max(spare, 0) or 'none'} more may fail"
    text = f"silent: {len(silent)} of {counted(len(found.voters), 'voter')}, {named}; {rest}"
    return "\n".join((text, *_replaced_disks(found, silent)))


def _replaced_disks(found: QuorumStatus, silent: "Sequence[ReplicaLag]") -> "Iterator[str]":
    """A line for each silent voter whose node is there, with another directory."""
    for voter in silent:
        for observer in found.observers:
            is_same_node = observer.replica_id == voter.replica_id
            if is_same_node and None not in (voter.directory_id, observer.directory_id) and observer.alive:
                yield (
                    f"voter {voter.replica_id} is registered with directory {voter.directory_id}, but node "
                    f"{voter.replica_id} runs with directory {observer.directory_id}: its disk was replaced or "
                    f"formatted again; `kquorum quorum remove-voter {voter.replica_id}`, then `add-voter "
                    f"{voter.replica_id}`"
                )


_STATES = {True: "alive", False: "silent", None: "unknown"}


def _row(replica: ReplicaLag, role: str, now_ms: int) -> tuple[object, ...]:
    is_leader = role == "leader"
    return (
        replica.replica_id,
        role,
        _STATES[replica.alive],
        "unknown" if replica.log_end_offset is None else replica.log_end_offset,
        "unknown" if replica.lag is None else replica.lag,
        "" if is_leader else age(replica.last_fetch_timestamp_ms, now_ms),
        "" if is_leader else age(replica.last_caught_up_timestamp_ms, now_ms),
    )


def age(timestamp_ms: int | None, now_ms: int) -> str:
    """How long ago: `0.2 s`; `never` when it is not known to have happened."""
    if timestamp_ms is None:
        return "never"
    return f"{max(now_ms - timestamp_ms, 0) / 1000:,.1f} s ago"
