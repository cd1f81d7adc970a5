"""Commands that let time pass."""

from kquorum.raft.roles import deadline_of
from tests.scenarios.arguments import Arguments
from tests.scenarios.cluster import Cluster
from tests.scenarios.errors import ScenarioError
from tests.scenarios.transcript import Volume


def advance(cluster: Cluster, arguments: Arguments) -> None:
    """`advance 1000`, `advance 1: 1000`: time passes and timers fire; no message arrives."""
    _let_time_pass(cluster, arguments, delivering=False)


def run(cluster: Cluster, arguments: Arguments) -> None:
    """`run 1000`: time passes and messages arrive at once; the messages are not shown."""
    cluster.transcript.volume = Volume.EVENTS
    _let_time_pass(cluster, arguments, delivering=True)


def skip(cluster: Cluster, arguments: Arguments) -> None:
    """`skip 60000`: as `run`, and nothing is shown."""
    cluster.transcript.volume = Volume.SILENT
    _let_time_pass(cluster, arguments, delivering=True)


def watch(cluster: Cluster, arguments: Arguments) -> None:
    """`watch 1000`: as `run`, and the messages are shown."""
    _let_time_pass(cluster, arguments, delivering=True)


def _let_time_pass(cluster: Cluster, arguments: Arguments, *, delivering: bool) -> None:
    first = arguments.word("how long (ms)")
    if first.endswith(":"):
        duration_ms = arguments.number("how long (ms)")
        cluster.advance(duration_ms, delivering=delivering, only=int(first[:-1]))
    else:
        cluster.advance(int(first), delivering=delivering)


def timeout(cluster: Cluster, arguments: Arguments) -> None:
    """`timeout 1`: only node 1's time passes, until the timer of its role runs out."""
    run_out(cluster, arguments.number("the node"))


def run_out(cluster: Cluster, node_id: int) -> None:
    host, node = cluster.host(node_id), cluster.live(node_id)
    role = node.replica.role
    deadline_ms = deadline_of(role)
    if deadline_ms is None:
        raise ScenarioError(f"node {node_id}, {node.role}, has no timer")
    cluster.advance(max(0, deadline_ms - host.now_ms), delivering=False, only=node_id)


def elect(cluster: Cluster, arguments: Arguments) -> None:
    """`elect 1`: a set-up; the others' timers run out too and their pre-votes are lost, so that 1 can win."""
    node_id = arguments.number("the node")
    cluster.transcript.volume = Volume.SILENT
    cluster.deliver_all()
    for host in cluster.hosts.values():
        followers = host.runs and host.node_id != node_id and cluster.live(host.node_id).role == "follower"
        if followers and cluster.live(host.node_id).replica.is_voter:
            run_out(cluster, host.node_id)
    cluster.network.in_flight.clear()
    run_out(cluster, node_id)
    cluster.deliver_all()
    node = cluster.live(node_id)
    if node.role != "leader":
        raise ScenarioError(f"node {node_id} was not elected: it is {node.role} in epoch {node.leader_epoch}")
    place = f"log end {node.log_end_offset}, high watermark {node.high_watermark}"
    cluster.transcript.say(f"{node_id} leads epoch {node.leader_epoch}, {place}")
