"""Commands that look on and change nothing."""

from kquorum.raft.roles import Leader
from tests.scenarios.arguments import Arguments
from tests.scenarios.cluster import Cluster
from tests.scenarios.host import Host
from tests.scenarios.wording import batch_text, id_text, state_text


def state(cluster: Cluster, arguments: Arguments) -> None:
    """`state`, `state 1,2`: role, election state, where the log ends, what is durable and what is committed."""
    wanted = arguments.numbers("the nodes") if arguments.words else list(cluster.hosts)
    for node_id in wanted:
        cluster.transcript.say(_state_line(cluster.host(node_id)))


def _state_line(host: Host) -> str:
    node = host.node
    if node is None:
        return f"{host.node_id} does not run"
    replica = node.replica
    log = replica.log
    flushed = "" if log.flushed_offset == log.log_end_offset else f" flushed={log.flushed_offset}"
    return (
        f"{host.node_id} {node.role} {state_text(replica.state)} log={log.log_end_offset}@{log.last_epoch}{flushed}"
        f" hw={id_text(node.high_watermark)}"
    )


def log(cluster: Cluster, arguments: Arguments) -> None:
    """`log 2`: every record as `offset@epoch content`; of all nodes without a number."""
    wanted = arguments.numbers("the nodes") if arguments.words else list(cluster.hosts)
    for node_id in wanted:
        batches = cluster.host(node_id).disk.batches
        cluster.transcript.say(f"{node_id}: {' | '.join(map(batch_text, batches)) or 'empty'}")


def messages(cluster: Cluster, arguments: Arguments) -> None:
    """`messages`: what is under way, what is held back, and whose fetches wait at a leader."""
    for message in cluster.network.in_flight:
        cluster.transcript.say(f"under way: {message.line}")
    for message in cluster.network.held:
        cluster.transcript.say(f"held: {message.line}")
    for host in cluster.hosts.values():
        waiting = _parked(host)
        if waiting:
            cluster.transcript.say(f"parked at {host.node_id}: {', '.join(waiting)}")


def hide(cluster: Cluster, arguments: Arguments) -> None:
    """`hide fetch describequorum`: requests of these kinds and their answers are not shown from now on."""
    cluster.transcript.hidden_kinds.update(arguments.rest())


def show(cluster: Cluster, arguments: Arguments) -> None:
    """`show fetch`: takes `hide` back."""
    cluster.transcript.hidden_kinds.difference_update(arguments.rest())


def _parked(host: Host) -> list[str]:
    role = None if host.node is None else host.node.replica.role
    if not isinstance(role, Leader):
        return []
    return [
        f"fetch of {parked.request.replica.id} at {parked.request.fetch_offset}"
        for parked in role.parked.values()
    ]
