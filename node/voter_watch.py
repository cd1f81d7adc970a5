"""Reports the voters to the operator, and warns when a live voter is removed, perhaps by mistake.

Such a voter keeps fetching, as an observer. Two processes with one node id and `controller.quorum.auto.join.enable`
take the place from each other in this way (KIP-853 asks the newer one to remove the older).
"""

import asyncio
import logging
from typing import Final
from uuid import UUID

from kquorum.node.logs import log as notable_log
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse
from kquorum.raft.ports import RaftClient
from kquorum.raft.ready import VotersChanged
from kquorum.raft.voters import NO_VOTERS, ZERO_DIRECTORY, ReplicaKey, VoterSet
from kquorum.wire.uuids import uuid_to_text

# For this long after the removal of a live voter, a warning says that another voter took its place.
REMEMBERED_MS: Final = 600_000
log = logging.getLogger("node.voter_watch")


class VoterWatch:
    """Made and used on the loop; call `handle` with each voter set in force."""

    def __init__(
        self,
        node_id: int,
        fetch_timeout_ms: int,
        directory_id: UUID = ZERO_DIRECTORY,
        *,
        joins_by_itself: bool = False,
    ) -> None:
        """`joins_by_itself` says that this node adds itself to the voters (auto-join)."""
        self._node_id = node_id
        self._joins_by_itself = joins_by_itself
        self._directory_id = directory_id
        self._fetch_timeout_ms = fetch_timeout_ms
        self._voters: VoterSet = NO_VOTERS
        self._removed_alive: dict[int, tuple[UUID, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, now_ms: int, driver: RaftClient, change: VotersChanged) -> None:
        """Only the leader knows which voters are alive, so only the leader warns."""
        before, self._voters = self._voters, change.voters
        if len(before) and before.keys == change.voters.keys:
            return
        listed = ", ".join(map(str, change.voters.ids)) or "none known yet"
        logger = notable_log if len(change.voters) else log
        logger.info("the voters are %s (kraft.version %d)", listed, change.kraft_version)
        self._warn_of_own_directory()
        if driver.leader_id != self._node_id:
            return
        for key in sorted(change.voters.keys - before.keys):
            self._warn_of_successor(now_ms, key)
        # A static voter was known by its id alone; that it is given its directory id removes no voter.
        left = {key for key in before.keys - change.voters.keys if key.directory_id != ZERO_DIRECTORY}
        if left:
            task = asyncio.get_running_loop().create_task(self._look_whether_alive(now_ms, driver, left))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _look_whether_alive(self, now_ms: int, driver: RaftClient, left: set[ReplicaKey]) -> None:
        try:
            response = await driver.ask(DescribeQuorumRequest())
        except NotLeaderError:
            return
        assert isinstance(response, DescribeQuorumResponse), response
        for status in response.observers:
            key = ReplicaKey(status.replica_id, status.directory_id)
            silent_ms = now_ms - status.last_fetch_timestamp_ms
            if key in left and silent_ms <= self._fetch_timeout_ms:
                self._warn_of_removal(now_ms, key, max(0, silent_ms))

    def _warn_of_own_directory(self) -> None:
        """A node whose disk was replaced is another replica, and votes no more; nothing else would say so."""
        own = self._voters.voters.get(self._node_id)
        if own is None or ZERO_DIRECTORY in (own.key.directory_id, self._directory_id):
            return
        if own.key.directory_id == self._directory_id:
            return
        remedy = (
            "it takes the place of the old one by itself (controller.quorum.auto.join.enable)"
            if self._joins_by_itself
            else f"`kquorum quorum remove-voter {self._node_id}`, then `add-voter {self._node_id}`, make it a voter"
        )
        notable_log.warning(
            "voter %d is registered with directory %s, but this node has directory %s: its disk was replaced or "
            "formatted again, so it does not vote; %s",
            self._node_id,
            uuid_to_text(own.key.directory_id),
            uuid_to_text(self._directory_id),
            remedy,
        )

    def _warn_of_removal(self, now_ms: int, key: ReplicaKey, silent_ms: int) -> None:
        self._removed_alive[key.id] = (key.directory_id, now_ms)
        log.warning(
            "voter %d (directory %s) was removed while it was alive: it fetched %d ms before, and now only observes",
            key.id,
            uuid_to_text(key.directory_id),
            silent_ms,
        )
        successor = self._voters.voters.get(key.id)
        if successor is not None:
            self._warn_of_successor(now_ms, successor.key)

    def _warn_of_successor(self, now_ms: int, key: ReplicaKey) -> None:
        removed = self._removed_alive.pop(key.id, None)
        if removed is None or removed[0] == key.directory_id or removed[1] + REMEMBERED_MS < now_ms:
            return
        log.warning(
            "voter %d (directory %s) joins in place of %d (directory %s), which was alive when it was removed %.0f s "
            "ago. Unless node %d was moved to another folder, two processes run with this id: stop the wrong one, then "
            "`kquorum quorum remove-voter` and `add-voter` put the right one in its place",
            key.id,
            uuid_to_text(key.directory_id),
            key.id,
            uuid_to_text(removed[0]),
            (now_ms - removed[1]) / 1000,
            key.id,
        )
