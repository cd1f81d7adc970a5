"""`kquorum quorum`: who leads, and how far the others follow."""

import time
from typing import TYPE_CHECKING

import typer

from cli.commands.options import AsJson, BootstrapController, MaybeConfigPath, TimeoutMs

if TYPE_CHECKING:
    from rich.table import Table

    from cli.quorum_status import QuorumStatus, ReplicaLag

quorum_app = typer.Typer(help="Leader, epoch and lag of the quorum.", no_args_is_help=True)


@quorum_app.callback()
def _quorum() -> None:
    """Leader, epoch and lag of the quorum."""


@quorum_app.command()
def status(
    config: MaybeConfigPath = None,
    bootstrap_controller: BootstrapController = None,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """Leader, epoch, high watermark, and the lag of every voter and observer, as the leader knows them.

    Exit status 6 when no controller answers, or none of them leads.
    """
    from cli.cluster_client import ClusterClient, controller_addresses, run_asking
    from cli.output import console, print_json
    from cli.quorum_status import describe_quorum

    addresses = controller_addresses(config, bootstrap_controller)

    async def ask() -> "QuorumStatus":
        async with ClusterClient(addresses, timeout_ms) as client:
            return await describe_quorum(client)

    found = run_asking(ask())
    if as_json:
        print_json(found.as_json())
    else:
        console().print(quorum_table(found, time.time_ns() // 1_000_000))


def quorum_table(found: "QuorumStatus", now_ms: int) -> "Table":
    """A row for each replica; the title says who leads."""
    from cli.output import make_table

    title = f"leader {found.leader_id}, epoch {found.leader_epoch}, high watermark {found.high_watermark:,}"
    rows = [
        _row(replica, "leader" if replica.replica_id == found.leader_id else "voter", now_ms)
        for replica in found.voters
    ]
    rows += [_row(replica, "observer", now_ms) for replica in found.observers]
    return make_table(title, ("#node", "role", "#log end", "#lag", "#last fetch", "#last caught up"), rows)


def _row(replica: "ReplicaLag", role: str, now_ms: int) -> tuple[object, ...]:
    is_leader = role == "leader"
    return (
        replica.replica_id,
        role,
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
