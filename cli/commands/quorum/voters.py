"""`quorum add-voter | remove-voter | transfer-leadership | upgrade`: check, request, wait for the commit.

Each command has a `run_...` function, which calls `_run`: find the leader, run the pre-flight (`voter_checks.py`), send
the request, and wait until the leader's answers show the change. `outcome.py` prints the result. `raft/membership.py`
makes the change at the leader.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kquorum.cli.clients.addresses import (
    DEFAULT_CONFIG,
    KnownControllers,
    known_controllers,
    quorum_addresses,
)
from kquorum.cli.clients.cluster_client import (
    ClusterClient,
    PendingRequest,
    Unanswered,
    check_error,
    run_asking,
)
from kquorum.cli.clients.quorum_client import NOT_THE_LEADER
from kquorum.cli.clients.security import remember_cluster
from kquorum.cli.commands.quorum.outcome import Outcome
from kquorum.cli.commands.quorum.status import leaderless_of
from kquorum.cli.commands.quorum.voter_checks import (
    LOOK_ON_S,
    Candidate,
    ObservedQuorum,
    PreflightCheck,
    add_voter_checks,
    look,
    remove_voter_checks,
    resolve,
    transfer_checks,
    upgrade_checks,
)
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import tell_waiting
from kquorum.node.config.addresses import HostPort, parse_host_port
from kquorum.node.config.load import load_config
from kquorum.node.config.model import ClusterConfig, NodeConfig
from kquorum.node.endpoints import advertised_controllers
from kquorum.wire.message_schema import Request
from kquorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from kquorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kquorum.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kquorum.wire.uuids import ZERO_UUID, uuid_from_text


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that a command was pointed at."""

    config: Path | None
    bootstrap_controller: str | None
    bootstrap_server: str | None
    timeout_ms: int
    reason: str | None = None

    def addresses(self) -> tuple[HostPort, ...]:
        return quorum_addresses(self.config, self.bootstrap_controller, self.bootstrap_server)

    def known(self) -> KnownControllers:
        return known_controllers(self.config, self.bootstrap_controller or self.bootstrap_server)

    def cluster(self) -> ClusterConfig | None:
        """The config, where one was named or nothing else says where the cluster is."""
        if self.config is None and (self.bootstrap_controller or self.bootstrap_server):
            return None
        cluster = load_config(self.config or DEFAULT_CONFIG)
        remember_cluster(cluster)
        return cluster

    @property
    def cluster_id(self) -> str | None:
        cluster = self.cluster()
        return None if cluster is None else cluster.cluster_id


PAUSE_S = 0.1
LOOK_AGAIN_S = 0.02
LAST_LOOK_S = 0.3  # before the time is up: a look that the end of the time cuts off tells nothing
# While nodes are restarted one by one, two of three may refuse connections for a moment.
LOST_FOR_S = 1.0
_NONE, _REQUEST_TIMED_OUT, _DUPLICATE_VOTER, _VOTER_NOT_FOUND = 0, 7, 126, 127
DOUBT = "the request may have been carried out: look with `kquorum quorum status`"
Look = Callable[[ObservedQuorum], list[PreflightCheck]]


class LostMajority:
    """Whether a majority of the voters has been missing for `LOST_FOR_S`, in every round, and so in two rounds at
    least."""

    def __init__(self) -> None:
        self._since_s: float | None = None

    def lasts(self, now_s: float, *, is_lost: bool) -> bool:
        """Call this after each round."""
        if not is_lost:
            self._since_s = None
            return False
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s >= LOST_FOR_S


async def preflight(
    client: ClusterClient, checks_of: Look, *, wait: bool, tell: Callable[[str], None]
) -> tuple[ObservedQuorum, list[PreflightCheck]]:
    """The checks, after the time that shows which replicas are alive. With `wait` they run again until the timeout,
    while only waiting can help."""
    loop = asyncio.get_running_loop()
    # One look cannot tell a replica that fetches from one that has just died: the leader reports the time of its last
    # fetch. The second look shows whose time has moved on.
    first = await look(client)
    looked_on_at = loop.time() + LOOK_ON_S
    if any(check.is_wished for check in checks_of(first)):
        return first, checks_of(first)
    deadline = max(looked_on_at, client.deadline - LAST_LOOK_S) if wait else looked_on_at
    shown: set[str] = set()
    while True:
        view = await look(client, first)
        checks = checks_of(view)
        failed = [check for check in checks if not check.passed]
        is_hopeless = any(not check.may_pass_later for check in failed)
        if loop.time() >= (looked_on_at if is_hopeless else deadline):
            return view, checks
        if all(not check.may_pass_later for check in failed):
            return view, checks  # nothing failed, or nothing that looking on would change
        for check in failed if loop.time() >= looked_on_at else ():
            if check.name not in shown:
                shown.add(check.name)
                tell(f"waiting: {check.detail}")
        await asyncio.sleep(PAUSE_S)


def voters_of(view: ObservedQuorum, known: KnownControllers) -> KnownControllers:
    """The known controllers, and the voters that the leader named. If the leader is lost, these voters show whether
    there can be another one."""
    places = {HostPort(node.host, node.port): node.node_id for node in view.status.nodes}
    voters = frozenset(voter.replica_id for voter in view.status.voters)
    return KnownControllers({**places, **known.ids}, voters)


async def add_voter(
    client: ClusterClient, cluster_id: str | None, candidate: Candidate, listener: str
) -> None:
    """Returns once the leader says that it is committed. Raises CliError for a refusal."""
    assert candidate.directory_id is not None
    assert candidate.endpoint is not None
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=client.remaining_ms,
        voter_id=candidate.node_id,
        voter_directory_id=uuid_from_text(candidate.directory_id),
        listeners=(Listener(name=listener, host=candidate.endpoint.host, port=candidate.endpoint.port),),
        ack_when_committed=True,
    )
    what = f"node {candidate.node_id} was not added to the voters"
    await _change(client, request, what, done=_DUPLICATE_VOTER)


async def remove_voter(
    client: ClusterClient, cluster_id: str | None, node_id: int, directory_id: str | None
) -> None:
    """Returns once the leader says that it is committed. Raises CliError for a refusal."""
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=node_id,
        voter_directory_id=ZERO_UUID if directory_id is None else uuid_from_text(directory_id),
    )
    what = f"node {node_id} was not removed from the voters"
    await _change(client, request, what, done=_VOTER_NOT_FOUND)


VoterChange = TypeVar("VoterChange", AddRaftVoterResponse, RemoveRaftVoterResponse)


async def _change(client: ClusterClient, request: Request[VoterChange], what: str, *, done: int) -> None:
    """Repeat the request until the change is done or finally refused.

    REQUEST_TIMED_OUT has two meanings: the leader cannot begin now (another change is under way, say), or the change is
    not committed yet. In the second case the next request is refused with the error `done` (the node is a voter
    already, or no longer one), and that is a success. The same holds if a leader resigned after it had begun the
    change.
    """
    leader = client.answered_by
    was_asked = False
    loop = asyncio.get_running_loop()
    lost = LostMajority()

    def is_hopeless(pending: PendingRequest[VoterChange]) -> bool:
        is_lost = client.known.lack_a_majority(answering=pending.refused, silent=pending.silent)
        return lost.lasts(loop.time(), is_lost=is_lost) and client.leader_timeout_ms is not None

    while True:
        try:
            response = await client.ask(
                PendingRequest(
                    request=request,
                    accept=_is_from_leader,
                    refusal=lambda _: "answers, but does not lead",
                    is_hopeless=is_hopeless,
                    doubt=DOUBT,
                    wanted="the leader to commit the change",
                )
            )
        except Unanswered as error:
            error.pending.may_be_done |= was_asked or leader in client.refused_by
            raise
        was_asked = was_asked or client.was_in_doubt or leader in client.refused_by
        code = int(response.error_code)
        if code == _NONE or (was_asked and code == done):
            return
        if code != _REQUEST_TIMED_OUT:
            check_error(code, response.error_message, what)
        if loop.time() >= client.deadline - PAUSE_S:
            reason = f" ({response.error_message})" if response.error_message else ""
            raise CliError(
                f"the leader did not say within {client.timeout_ms} ms that it is done{reason}; {DOUBT}",
                status=ExitStatus.UNREACHABLE,
            )
        # The leader may have begun this change before the time was up, so the error `done` is a success from now on.
        was_asked = True
        await asyncio.sleep(PAUSE_S)


def _is_from_leader(
    response: AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateFeaturesResponse,
) -> bool:
    return int(response.error_code) not in NOT_THE_LEADER


async def upgrade(client: ClusterClient, *, validate_only: bool) -> None:
    """kraft.version 0 to 1, as `kafka-features upgrade --feature kraft.version=1` asks for it. Raises CliError."""
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
    request = UpdateFeaturesRequest(
        timeout_ms=client.remaining_ms, feature_updates=(update,), validate_only=validate_only
    )
    response = await client.ask(
        PendingRequest(request=request, accept=_is_from_leader, doubt=None if validate_only else DOUBT)
    )
    what = "kraft.version cannot be upgraded" if validate_only else "kraft.version was not upgraded"
    check_error(int(response.error_code), response.error_message, what)
    for result in response.results:
        check_error(int(result.error_code), result.error_message, what)


async def wait_for(
    client: ClusterClient, is_reached: Callable[[ObservedQuorum], bool], what: str
) -> ObservedQuorum:
    """The first view for which `is_reached` holds. Raises CliError if there is none in time; the change may still
    come."""
    try:
        while True:
            view = await look(client)
            if is_reached(view):
                return view
            if asyncio.get_running_loop().time() >= client.deadline:
                break
            await asyncio.sleep(LOOK_AGAIN_S)
    except Unanswered as error:
        missed = f": {error}"  # which says how long it was asked for, where the time was up
    else:
        missed = f" within {client.timeout_ms} ms"
    raise CliError(
        f"{what} was agreed to, but did not show{missed}; see `kquorum quorum status`",
        status=ExitStatus.FAILED,
    )


DEFAULT_LISTENER = "CONTROLLER"
Work = Callable[[ClusterClient, ObservedQuorum], Awaitable[Callable[[ObservedQuorum], bool]]]


def run_add_voter(
    target: Target, node_id: int, *, endpoint: str | None, directory_id: str | None, dry_run: bool, wait: bool
) -> Outcome:
    typed = None if endpoint is None else _parse_endpoint(endpoint)
    _check_directory_id(directory_id)
    cluster = target.cluster()
    node = _node(cluster, node_id)
    listener = _listener_name(cluster)

    def candidate(view: ObservedQuorum) -> Candidate:
        return resolve(
            view,
            node_id,
            directory_id=directory_id,
            endpoint=typed,
            configured=None if node is None else _configured_place(node),
            is_configured_controller=None if node is None else node.is_controller,
        )

    async def work(client: ClusterClient, view: ObservedQuorum) -> Callable[[ObservedQuorum], bool]:
        await add_voter(client, target.cluster_id, candidate(view), listener)
        return lambda now: now.status.voter(node_id) is not None

    return _run(
        target,
        f"add-voter {node_id}",
        lambda view: add_voter_checks(view, candidate(view)),
        work,
        dry_run=dry_run,
        wait=wait,
    )


def run_remove_voter(target: Target, node_id: int, *, dry_run: bool, wait: bool) -> Outcome:
    async def work(client: ClusterClient, view: ObservedQuorum) -> Callable[[ObservedQuorum], bool]:
        voter = view.status.voter(node_id)
        await remove_voter(client, target.cluster_id, node_id, None if voter is None else voter.directory_id)
        return lambda now: now.status.voter(node_id) is None and now.status.leader_id != node_id

    return _run(
        target,
        f"remove-voter {node_id}",
        lambda view: remove_voter_checks(view, node_id),
        work,
        dry_run=dry_run,
        wait=wait,
        ask_last=node_id,
    )


def run_transfer(target: Target, node_id: int, *, grpc: str | None, dry_run: bool, wait: bool) -> Outcome:
    from kquorum.cli.clients.addresses import grpc_addresses
    from kquorum.cli.clients.grpc_client import transfer_leadership

    listeners = grpc_addresses(target.config, grpc, needed_by="a transfer of leadership")

    async def work(client: ClusterClient, view: ObservedQuorum) -> Callable[[ObservedQuorum], bool]:
        leader = _node(target.cluster(), view.status.leader_id)
        first = (
            [] if leader is None or leader.kquorum_grpc_listener is None else [leader.kquorum_grpc_listener]
        )
        order = sorted(listeners, key=lambda address: address not in first)
        await transfer_leadership(order, node_id, client.remaining_ms, tell=tell_waiting)
        return lambda now: now.status.leader_id == node_id

    return _run(
        target,
        f"transfer-leadership {node_id}",
        lambda view: transfer_checks(view, node_id),
        work,
        dry_run=dry_run,
        wait=wait,
    )


def run_upgrade(target: Target, *, dry_run: bool, wait: bool) -> Outcome:
    async def work(client: ClusterClient, _view: ObservedQuorum) -> Callable[[ObservedQuorum], bool]:
        await upgrade(client, validate_only=False)
        return lambda now: now.kraft_version >= 1

    async def ask_leader(client: ClusterClient) -> PreflightCheck:
        try:
            await upgrade(client, validate_only=True)
        except CliError as error:
            remedy = "see what the leader says"
            return PreflightCheck(
                name="the leader agrees", passed=False, detail=str(error), remedy=remedy, may_pass_later=True
            )
        return PreflightCheck(
            name="the leader agrees", passed=True, detail="it would upgrade kraft.version to 1"
        )

    return _run(target, "upgrade", upgrade_checks, work, dry_run=dry_run, wait=wait, last_check=ask_leader)


def _run(
    target: Target,
    command: str,
    checks_of: Look,
    work: Work,
    *,
    dry_run: bool,
    wait: bool,
    last_check: Callable[[ClusterClient], Coroutine[Any, Any, PreflightCheck]] | None = None,
    ask_last: int | None = None,
) -> Outcome:
    """Check, and unless this is a dry run, do the work. Everything ends with the time limit.

    `work` sends the request, and returns the condition that shows the change. `last_check` runs after the other checks
    have passed. `ask_last` is a node that may be dead or hang: it is asked after all others.
    """
    known = target.known()
    # A connection to a dead machine may take the whole time limit, which the other addresses need.
    addresses = sorted(target.addresses(), key=lambda address: known.ids.get(address, -1) == ask_last)

    async def find_leader() -> None:
        """Learn the voters, so that the command ends early if too few of them answer to elect a leader, now or
        later."""
        nonlocal known
        limit_ms = min(LEADER_TIMEOUT_MS, target.timeout_ms)
        async with ClusterClient(addresses, limit_ms, known=known, tell=tell_waiting) as client:
            known = voters_of(await look(client), known)

    async def ask() -> Outcome:
        # With --wait the command outlasts an election, so a lost leader is no reason to end early.
        if not wait:
            await find_leader()
        loop = asyncio.get_running_loop()
        async with ClusterClient(
            addresses,
            target.timeout_ms,
            known=known,
            tell=tell_waiting,
            reason=target.reason,
            leader_timeout_ms=None if wait else LEADER_TIMEOUT_MS,
        ) as client:
            view, checks = await preflight(client, checks_of, wait=wait, tell=tell_waiting)
            if last_check is not None and all(check.passed for check in checks):
                checks.append(await last_check(client))
            looked = Outcome(command=command, checks=checks, before=view.status)
            if dry_run or not looked.passed:
                return looked
            began = loop.time()
            is_reached = await work(client, view)
            after = await _seen(client, is_reached, command)
            took_ms = round((loop.time() - began) * 1000)
        return Outcome(
            command=command, checks=checks, before=view.status, after=after.status, took_ms=took_ms
        )

    try:
        return run_asking(ask())
    except Unanswered as error:
        pending, is_refused = error.pending, error.status is ExitStatus.FAILED
        is_mute = pending.doubt is not None and not pending.refused
        if is_mute or target.bootstrap_server or is_refused:
            raise
        doubt = f"; {pending.doubt}" if pending.doubt and pending.may_be_done else ""
        raise CliError(leaderless_of(error, known).summary + doubt, status=ExitStatus.UNREACHABLE) from error


# Longer than an election with the default timeouts takes.
LEADER_TIMEOUT_MS = 6_000


async def _seen(
    client: ClusterClient, is_reached: Callable[[ObservedQuorum], bool], command: str
) -> ObservedQuorum:
    try:
        return await wait_for(client, is_reached, command)
    except asyncio.CancelledError:
        tell_waiting(f"{command} was agreed to: see `kquorum quorum status`")
        raise


def _node(cluster: ClusterConfig | None, node_id: int) -> NodeConfig | None:
    nodes = () if cluster is None else cluster.nodes
    return next((node for node in nodes if node.node_id == node_id), None)


def _listener_name(cluster: ClusterConfig | None) -> str:
    """The name of the quorum's listener, which is the same for all nodes of a cluster."""
    names = [
        name for node in (() if cluster is None else cluster.nodes) for name in node.controller_listener_names
    ]
    return names[0] if names else DEFAULT_LISTENER


def _configured_place(node: NodeConfig) -> HostPort | None:
    listeners = advertised_controllers(node) if node.is_controller else ()
    return HostPort(listeners[0].host, listeners[0].port) if listeners and listeners[0].host else None


def _parse_endpoint(text: str) -> HostPort:
    try:
        return parse_host_port(text)
    except ValueError as error:
        raise CliError(f"--endpoint: {error}", status=ExitStatus.USAGE) from error


def _check_directory_id(text: str | None) -> None:
    try:
        if text is not None:
            uuid_from_text(text)
    except ValueError as error:
        raise CliError(f"--directory-id: {error}", status=ExitStatus.USAGE) from error
