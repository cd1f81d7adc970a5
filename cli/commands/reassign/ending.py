"""The end of throttled moves: the throttles are removed, and the removal is verified."""

import asyncio
from collections.abc import Sequence
from typing import Final

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.commands.reassign.progress import topics_of
from kquorum.cli.commands.reassign.reassign_client import find_ongoing, find_partitions
from kquorum.cli.commands.reassign.throttles import Throttles, find_throttles, remove_throttles
from kquorum.cli.failures import CliError

# A broker applies a change of configs a moment after the quorum has committed it.
_VERIFIED_WITHIN_S: Final = 5.0
_PAUSE_S: Final = 0.1


async def remove_all_throttles(client: ClusterClient, topics: Sequence[str] | None) -> Throttles | None:
    """Of all live brokers, and of these topics or all; what was removed. None while partitions move, or where nothing
    is set. Raises CliError if some are still set after five seconds."""
    if await find_ongoing(client):
        return None
    names = topics_of(await find_partitions(client, None)) if topics is None else topics
    throttles = await find_throttles(client, names)
    if not throttles.are_set:
        return None
    await remove_throttles(client, throttles)
    loop = asyncio.get_running_loop()
    give_up_at_s = loop.time() + _VERIFIED_WITHIN_S
    while (left := await find_throttles(client, names)).are_set:
        if loop.time() >= give_up_at_s:
            raise CliError(
                f"throttles were removed, and are still in force: {left.words}; look with `kquorum configs describe`"
            )
        await asyncio.sleep(_PAUSE_S)
    return throttles
