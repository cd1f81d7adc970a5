"""A node's part in the comparison of states: its own goes out with its Fetches, and others' come in with theirs."""

import logging
from collections.abc import Callable

from kquorum.metadata.state_hash.comparison import Mismatch, StateComparison, annotation_of, reports_message
from kquorum.metadata.state_hash.image_hash import state_hash_text
from kquorum.raft.voters import ZERO_DIRECTORY, ReplicaKey
from kquorum.wire.uuids import uuid_to_text

log = logging.getLogger("node.state_watch")


class StateWatch:
    """Made and used on the loop."""

    def __init__(self, node_id: int, now_ms: Callable[[], int]) -> None:
        self._node_id = node_id
        self._now_ms = now_ms
        self.comparison = StateComparison(self._tell)

    def handle_own(self, offset: int, state_hash: int) -> None:
        self.comparison.note_own(self._now_ms(), offset, state_hash)

    def handle_annotation(self, replica: ReplicaKey, annotation: bytes) -> None:
        self.comparison.note_report(self._now_ms(), replica, annotation)

    def handle_role_change(self) -> None:
        self.comparison.forget_reports()

    def annotation(self) -> bytes:
        """What this node's next Fetch carries."""
        return annotation_of(self.comparison.own)

    def quorum_annotation(self) -> bytes:
        """What this node adds to DescribeQuorum as the leader."""
        return reports_message(self.comparison).SerializeToString()

    def _tell(self, mismatch: Mismatch) -> None:
        replica = mismatch.replica
        where = (
            f" (directory {uuid_to_text(replica.directory_id)})"
            if replica.directory_id != ZERO_DIRECTORY
            else ""
        )
        log.error(
            "STATE DIFFERS: at offset %d node %d%s has made another state of the metadata log than this node %d: its "
            "hash is %s, here it is %s. One of the two has a damaged log, or another program. Compare the folders of "
            "both with `kquorum log verify` and `kquorum log state-hash --offset %d`; then stop the one that is "
            "wrong, keep a copy of its metadata log, and start it with an empty one: it fetches everything again",
            mismatch.offset,
            replica.id,
            where,
            self._node_id,
            state_hash_text(mismatch.state_hash),
            state_hash_text(mismatch.own_hash),
            mismatch.offset,
        )
