"""Is the node well? Ready means that a recent commit was seen here, so that what it tells is of today; that the process
lives is another question, with an address of its own."""

import json
from http import HTTPStatus
from typing import Protocol

from kquorum.broker.lifecycle_states import BrokerState
from kquorum.node.commit_watch import Freshness
from kquorum.node.observability.figures import NodeFigures
from kquorum.node.observability.http_server import HttpReply

JSON = "application/json"
# A broker in controlled shutdown serves its present clients, but no new client should be sent to it.
_SERVING = frozenset({BrokerState.RUNNING})


class Life(Protocol):
    """Of a broker, what its readiness depends on."""

    @property
    def state(self) -> BrokerState: ...

    @property
    def is_fenced(self) -> bool: ...

    @property
    def previous_session_ends_ms(self) -> int | None: ...


def why_not_ready(freshness: Freshness, broker: Life | None, now_ms: int) -> str:
    """Empty where the node is ready. `broker` is None at a controller alone."""
    if freshness.reason or broker is None:
        return freshness.reason
    if (ends_in_ms := _session_ends_in_ms(broker, now_ms)) is not None:
        return f"the broker waits: the session of its previous process ends in {ends_in_ms / 1000:.0f} s"
    if broker.state not in _SERVING:
        return f"the broker is {broker.state.value}"
    return "the controller has this broker fenced" if broker.is_fenced else ""


def _session_ends_in_ms(broker: Life, now_ms: int) -> int | None:
    ends_ms = broker.previous_session_ends_ms
    return None if ends_ms is None else max(0, ends_ms - now_ms)


def ready_reply(node: NodeFigures) -> HttpReply:
    """200 or 503, each with the same JSON."""
    reason = why_not_ready(node.freshness, node.broker, node.now_ms)
    status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
    return _reply(status, {"status": "not ready" if reason else "ready", "reason": reason, **health_of(node)})


def live_reply(node: NodeFigures) -> HttpReply:
    """That there is an answer at all says that the loop turns."""
    return _reply(HTTPStatus.OK, {"status": "live", "node_id": node.node_id})


def health_of(node: NodeFigures) -> dict[str, object]:
    """What stands in the answer beside the verdict; times in milliseconds, null while unknown."""
    health: dict[str, object] = {
        "node_id": node.node_id,
        "cluster_id": node.cluster_id,
        "roles": list(node.roles),
        "is_cut_off": node.freshness.is_cut_off,
        "ms_since_commit": node.freshness.ms_since_commit,
        "metadata": {
            "offset": node.freshness.offset,
            "epoch": node.freshness.leader_epoch,
            "timestamp_ms": node.freshness.timestamp_ms,
        },
        "quorum": {
            "state": node.quorum.state,
            "leader_id": node.quorum.current_leader,
            "epoch": node.quorum.current_epoch,
            "high_watermark": node.quorum.high_watermark,
        },
    }
    if node.broker is not None:
        health["broker"] = {
            "state": node.broker.state.value,
            "epoch": node.broker.broker_epoch,
            "is_fenced": node.broker.is_fenced,
            "previous_session_ends_in_ms": _session_ends_in_ms(node.broker, node.now_ms),
        }
    return health


def _reply(status: HTTPStatus, content: dict[str, object]) -> HttpReply:
    return HttpReply(status=status, body=json.dumps(content, indent=2).encode() + b"\n", content_type=JSON)
