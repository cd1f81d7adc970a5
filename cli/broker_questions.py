"""Asking the brokers of a config, or those at the addresses given, as commands do."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from cli.cluster_addresses import broker_addresses
from cli.cluster_client import ClusterClient, run_asking
from cli.output import tell_waiting

T = TypeVar("T")


def ask_brokers(
    config: Path | None,
    bootstrap_server: str | None,
    timeout_ms: int,
    question: Callable[[ClusterClient], Awaitable[T]],
    reason: str | None = None,
) -> T:
    """What `question` answers; `reason` goes into the audit notes of what it changes. Raises CliError."""
    addresses = broker_addresses(config, bootstrap_server)

    async def ask() -> T:
        async with ClusterClient(addresses, timeout_ms, tell=tell_waiting, reason=reason) as client:
            return await question(client)

    return run_asking(ask())
