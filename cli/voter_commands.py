"""The work of `kquorum quorum add-voter | remove-voter | transfer-leadership | upgrade`: looked at, done, shown."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.cluster_client import DEFAULT_CONFIG, ClusterClient, quorum_addresses, run_asking
from cli.config.addresses import HostPort, parse_host_port
from cli.config.load import load_config
from cli.config.model import ClusterConfig, NodeConfig
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.nodes.endpoints import advertised_controllers
from cli.output import complain, console, print_json
from cli.quorum_tables import checks_table, voters_table
from cli.quorum_view import QuorumView
from cli.voter_changes import Look, Outcome, add_voter, preflight, remove_voter, resolve, upgrade, wait_for
from cli.voter_checks import (
    Candidate,
    Check,
    add_voter_checks,
    remove_voter_checks,
    transfer_checks,
    upgrade_checks,
)
from wire.uuids import uuid_from_text

DEFAULT_LISTENER = "CONTROLLER"
Work = Callable[[ClusterClient, QuorumView], Awaitable[Callable[[QuorumView], bool]]]


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that a command was pointed at."""

    config: Path | None
    bootstrap_controller: str | None
    bootstrap_server: str | None
    timeout_ms: int

    def addresses(self) -> tuple[HostPort, ...]:
        return quorum_addresses(self.config, self.bootstrap_controller, self.bootstrap_server)

    def cluster(self) -> ClusterConfig | None:
        """The config, where one was named or nothing else says where the cluster is."""
        if self.config is None and (self.bootstrap_controller or self.bootstrap_server):
            return None
        return load_config(self.config or DEFAULT_CONFIG)

    @property
    def cluster_id(self) -> str | None:
        cluster = self.cluster()
        return None if cluster is None else cluster.cluster_id


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
    )


def run_transfer(target: Target, node_id: int, *, grpc: str | None, dry_run: bool, wait: bool) -> Outcome:
    from cli.grpc_addresses import grpc_addresses
    from cli.quorum_grpc import transfer_leadership

    listeners = grpc_addresses(target.config, grpc, needed_by="a transfer of leadership")

    async def work(_client: ClusterClient, view: QuorumView) -> Callable[[QuorumView], bool]:
        leader = _node(target.cluster(), view.status.leader_id)
        first = (
            [] if leader is None or leader.kquorum_grpc_listener is None else [leader.kquorum_grpc_listener]
        )
        order = sorted(listeners, key=lambda address: address not in first)
        await transfer_leadership(order, node_id, target.timeout_ms)
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
) -> Outcome:
    async def ask() -> Outcome:
        loop = asyncio.get_running_loop()
        async with ClusterClient(target.addresses(), target.timeout_ms) as client:
            view, checks = await preflight(client, checks_of, wait=wait, tell=_tell)
            if last_check is not None and all(check.passed for check in checks):
                checks.append(await last_check(client))
            looked = Outcome(command=command, checks=checks, before=view.status)
            if dry_run or not looked.passed:
                return looked
            began = loop.time()
            is_reached = await work(client, view)
            after = await wait_for(client, is_reached, command)
            took_ms = round((loop.time() - began) * 1000)
        return Outcome(
            command=command, checks=checks, before=view.status, after=after.status, took_ms=took_ms
        )

    return run_asking(ask())


def show_outcome(outcome: Outcome, *, dry_run: bool, as_json: bool) -> None:
    """Raises CliError when the pre-flight said no, after telling what it found."""
    if as_json:
        print_json(outcome.as_json())
    else:
        console().print(checks_table(outcome.command, outcome.checks))
        if outcome.after is not None:
            console().print(voters_table(outcome.before, outcome.after))
            console().print(f"done in {outcome.took_ms} ms", markup=False)
    if not outcome.passed:
        failed = [check for check in outcome.checks if not check.passed]
        reasons = "; ".join(f"{check.detail} ({check.remedy})" for check in failed)
        raise CliError(f"{outcome.command} is not possible now: {reasons}", status=ExitStatus.FAILED)
    if dry_run and not as_json:
        console().print("nothing was changed: this was a dry run", markup=False)


def _tell(text: str) -> None:
    complain(text, style="cyan", label="quorum")


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
