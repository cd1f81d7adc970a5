"""The requests to each peer (rule R8.3): one in flight at a time, its time-out, and the back-off after an error.

This keeps a replica from flooding a peer that does not answer.
"""

from dataclasses import dataclass

from kquorum.raft.config import QuorumConfig


@dataclass(slots=True)
class _Connection:
    correlation_id: int | None = None
    waits_until_ms: int = 0


class Connections:
    """The state of the requests to every peer, by node id.

    A response counts only if it carries the correlation id in flight. A change of role forgets all of them, so that
    a late response of the old role is ignored.
    """

    def __init__(self, config: QuorumConfig) -> None:
        self._config = config
        self._connections: dict[int, _Connection] = {}
        self._next_correlation_id = 1

    @property
    def next_correlation_id(self) -> int:
        """Requests that are sent from now on have this correlation id or a higher one."""
        return self._next_correlation_id

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Whether a request may go out now: none is in flight (or it timed out), and no back-off is running."""
        connection = self._connections.get(node_id)
        return connection is None or connection.waits_until_ms <= now_ms

    def ready_at_ms(self, node_id: int) -> int:
        """When the connection becomes ready if nothing is heard; 0 if it is."""
        connection = self._connections.get(node_id)
        return 0 if connection is None else connection.waits_until_ms

    def sent(self, node_id: int, now_ms: int) -> int:
        """Take a connection into use; answers the correlation id for the request."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self._connections[node_id] = _Connection(correlation_id, now_ms + self._config.request_timeout_ms)
        return correlation_id

    def completed(self, node_id: int, correlation_id: int) -> bool:
        """Whether this answer was awaited; the connection is ready again."""
        connection = self._connections.get(node_id)
        if connection is None or connection.correlation_id != correlation_id:
            return False
        self._connections[node_id] = _Connection()
        return True

    def back_off(self, node_id: int, now_ms: int, backoff_ms: int | None = None) -> None:
        """Leave a peer alone for a while, by default for the retry back-off."""
        wait_ms = self._config.retry_backoff_ms if backoff_ms is None else backoff_ms
        self._connections[node_id] = _Connection(None, now_ms + wait_ms)

    def end_back_off(self, node_id: int) -> None:
        """What it was left alone for is over; a request in flight is still awaited."""
        connection = self._connections.get(node_id)
        if connection is not None and connection.correlation_id is None:
            del self._connections[node_id]

    def reset(self) -> None:
        self._connections.clear()
