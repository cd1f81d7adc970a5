"""What the nodes of the demo tell those who watch them, read as Prometheus or a load balancer would."""

import json
import urllib.error
import urllib.request
from typing import Any

from cli.demo.stage import Stage
from node.config.model import NodeConfig

_TIMEOUT_S = 5.0


def show_health(stage: Stage) -> None:
    """Of every node that has a `kquorum.metrics.listener`, once each is ready."""
    watched = [node for node in stage.config.nodes if node.kquorum_metrics_listener is not None]
    stage.wait(lambda: all(_health(node) is not None for node in watched), "every node has seen a commit")
    for node in watched:
        health = _health(node) or {}
        figures = sum(not line.startswith("#") for line in _get(node, "metrics").splitlines())
        stage.say(
            f"http://{node.kquorum_metrics_listener}/healthz: node {node.node_id} is {health.get('status')}, "
            f"its last commit {health.get('ms_since_commit')} ms ago; /metrics has {figures} figures"
        )


def _health(node: NodeConfig) -> dict[str, Any] | None:
    """None until the node is ready."""
    try:
        answer: dict[str, Any] = json.loads(_get(node, "healthz"))
    except urllib.error.URLError:
        return None
    return answer


def _get(node: NodeConfig, page: str) -> str:
    url = f"http://{node.kquorum_metrics_listener}/{page}"
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        text: str = answer.read().decode()
    return text
