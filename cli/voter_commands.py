"""The work of `kquorum quorum add-voter | remove-voter | transfer-leadership | upgrade`: looked at, done, shown."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from cli.cluster_client import ClusterClient, run_asking
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.leaderless import leaderless_of
from cli.output import tell_waiting
from cli.question import Unanswered
from cli.quorum_view import QuorumView, look
from cli.voter_changes import (
    Look,
    Outcome,
    add_voter,
    preflight,
    remove_voter,
    resolve,
    upgrade,
    voters_of,
    wait_for,
)
from cli.voter_checks import add_voter_checks, remove_voter_checks, transfer_checks, upgrade_checks
from cli.voter_points import Candidate, Check
from cli.voter_target import Target
from node.config.addresses import HostPort, parse_host_port
from node.config.model import ClusterConfig, NodeConfig
from node.endpoints import advertised_controllers
from wire.uuids import uuid_from_text

DEFAULT_LISTENER = "CONTROLLER"
Work = Callable[[ClusterClient, QuorumView], Awaitable[Callable[[QuorumView], bool]]]


def run_add_voter(
    target: Target, node_id: int, *, endpoint: str | None, directory_id: str | None, dry_run: bool, wait: bool
) -> Outcome:
    typed = None if endpoint is None else _parse_endpoint(endpoint)
    _check_directory_id(directory_id)
    cluster = target.cluster()
    node = _node(cluster, node_id)
    listener = _listener_name(cluster)

    def candidate(view: QuorumView) -> Candidate:
        return resolve(
            view,
            node_id,
            directory_id=directory_id,
            endpoint=typed,
            configured=None if node is None else _configured_place(node),
            is_configured_controller=None if node is None else node.is_controller,
        )

    async def work(client: ClusterClient, view: QuorumView) -> Callable[[QuorumView], bool]:
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
    async def work(client: ClusterClient, view: QuorumView) -> Callable[[QuorumView], bool]:
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
    from cli.grpc_addresses import grpc_addresses
    from cli.quorum_grpc import transfer_leadership

    listeners = grpc_addresses(target.config, grpc, needed_by="a transfer of leadership")

    async def work(client: ClusterClient, view: QuorumView) -> Callable[[QuorumView], bool]:
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
    async def work(client: ClusterClient, _view: QuorumView) -> Callable[[QuorumView], bool]:
        await upgrade(client, validate_only=False)
        return lambda now: now.kraft_version >= 1

    async def ask_leader(client: ClusterClient) -> Check:
        try:
            await upgrade(client, validate_only=True)
        except CliError as error:
            remedy = "see what the leader says"
            return Check(
                name="the leader agrees", passed=False, detail=str(error), remedy=remedy, may_pass_later=True
            )
        return Check(name="the leader agrees", passed=True, detail="it would upgrade kraft.version to 1")

    return _run(target, "upgrade", upgrade_checks, work, dry_run=dry_run, wait=wait, last_check=ask_leader)


def _run(
    target: Target,
    command: str,
    checks_of: Look,
    work: Work,
    *,
    dry_run: bool,
    wait: bool,
    last_check: Callable[[ClusterClient], Coroutine[Any, Any, Check]] | None = None,
    ask_last: int | None = None,
) -> Outcome:
    """`ask_last` is a node that may well be dead or hang. All of it ends with the time limit."""
    known = target.known()
    addresses = sorted(target.addresses(), key=lambda address: known.ids.get(address, -1) == ask_last)

    async def find_leader() -> None:
        """Without a majority of the voters there is no leader: what cannot begin is not waited for to the end, nor what
        loses its leader then."""
        nonlocal known
        limit_ms = min(LEADER_TIMEOUT_MS, target.timeout_ms)
        async with ClusterClient(addresses, limit_ms, known=known, tell=tell_waiting) as client:
            known = voters_of(await look(client), known)

    async def ask() -> Outcome:
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
        question, is_refused = error.question, error.status is ExitStatus.FAILED
        is_mute = question.doubt is not None and not question.refused
        if is_mute or target.bootstrap_server or is_refused:
            raise
        doubt = f"; {question.doubt}" if question.doubt and question.may_be_done else ""
        raise CliError(leaderless_of(error, known).summary + doubt, status=ExitStatus.UNREACHABLE) from error


# Longer than an election with the default timeouts takes.
LEADER_TIMEOUT_MS = 6_000


async def _seen(client: ClusterClient, is_reached: Callable[[QuorumView], bool], command: str) -> QuorumView:
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
