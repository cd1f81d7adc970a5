"""What a state machine or an operator asks of a replica."""

from collections.abc import Callable

from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import ReadRequested, ResignRequested, ShutdownRequested
from kquorum.raft.messages import TransferLeadershipRequest
from tests.scenarios.arguments import Arguments
from tests.scenarios.cluster import Cluster
from tests.scenarios.forging import forge_request


def propose(cluster: Cluster, arguments: Arguments) -> None:
    """`propose 1 x y`: one atomic group of records."""
    host = cluster.host(arguments.number("the node"))
    node = cluster.live(host.node_id)
    epoch = int(arguments.option("epoch", str(node.leader_epoch)))
    values = [value.encode() for value in arguments.rest()]
    try:
        node.propose(host.now_ms, epoch, values)
    except NotLeaderError as error:
        cluster.transcript.event(f"{host.node_id} refuses: {error}")
        return
    cluster.turn(host)


def resign(cluster: Cluster, arguments: Arguments) -> None:
    """`resign 1`, `resign 1 epoch=3`: the state machine gives up leading."""
    host = cluster.host(arguments.number("the node"))
    epoch = int(arguments.option("epoch", str(cluster.live(host.node_id).leader_epoch)))
    cluster.step(host, ResignRequested(epoch))


def shutdown(cluster: Cluster, arguments: Arguments) -> None:
    """`shutdown 1`: the process is asked to leave in good order."""
    host = cluster.host(arguments.number("the node"))
    cluster.live(host.node_id)
    cluster.step(host, ShutdownRequested())


def read(cluster: Cluster, arguments: Arguments) -> None:
    """`read 1 7`: a linearizable read with the id 7 begins at node 1."""
    host = cluster.host(arguments.number("the node"))
    read_id = arguments.number("the id of the read")
    cluster.live(host.node_id)
    cluster.reads[read_id] = "pending"
    cluster.step(host, ReadRequested(read_id))


def transfer(cluster: Cluster, arguments: Arguments) -> None:
    """`transfer 1 2`: an operator asks node 1 to hand leadership to node 2."""
    host = cluster.host(arguments.number("the leader"))
    target_id = arguments.number("the target")
    cluster.ask(host, TransferLeadershipRequest(target_id=target_id), "operator")


def voter_change(kind: str) -> Callable[[Cluster, Arguments], None]:
    def change(cluster: Cluster, arguments: Arguments) -> None:
        host = cluster.host(arguments.number("the node"))
        arguments.options.setdefault("voter", arguments.word("the voter"))
        if kind == "update-voter":
            arguments.options.setdefault("epoch", str(cluster.live(host.node_id).leader_epoch))
        cluster.ask(host, forge_request(kind, arguments, host.node_id), "operator")

    change.__doc__ = f"`{kind} 1 4`: an operator asks node 1; options as for `request`."
    return change


def upgrade(cluster: Cluster, arguments: Arguments) -> None:
    """`upgrade 1`: the state machine of node 1 finalises kraft.version 1."""
    host = cluster.host(arguments.number("the node"))
    node = cluster.live(host.node_id)
    version = int(arguments.option("version", "1"))
    try:
        refusal = node.upgrade_kraft_version(host.now_ms, node.leader_epoch, version)
    except NotLeaderError as error:
        refusal = str(error)
    if refusal is not None:
        cluster.transcript.event(f"{host.node_id} refuses: {refusal}")
    cluster.turn(host)
