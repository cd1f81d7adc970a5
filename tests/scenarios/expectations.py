"""`expect ...`: what a scenario claims, apart from the recorded output, so that no re-recording can remove it."""

from collections.abc import Callable

from kquorum.raft.node import RaftNode
from tests.scenarios.arguments import Arguments
from tests.scenarios.cluster import Cluster
from tests.scenarios.errors import ScenarioError
from tests.scenarios.network import read_selector
from tests.scenarios.wording import key_text, voters_text

Claim = Callable[[Cluster, Arguments], None]


def expect(cluster: Cluster, arguments: Arguments) -> None:
    """`expect leader 2` and others (see the README): an error when it is not so, whatever was
    recorded; it puts out nothing."""
    name = arguments.word("what to expect")
    if name not in CLAIMS:
        raise ScenarioError(f"unknown expectation '{name}'; known: {', '.join(sorted(CLAIMS))}")
    CLAIMS[name](cluster, arguments)


def _check_equal(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise ScenarioError(f"expected {what} to be {wanted}, and it is {found}")


def _live(cluster: Cluster) -> list[RaftNode]:
    return [host.node for host in cluster.hosts.values() if host.node is not None]


# Who leads


def _leader(cluster: Cluster, arguments: Arguments) -> None:
    """`leader 2`: it leads the newest epoch of any node; `leader none`: no node leads that epoch."""
    wanted = arguments.word("the leader, or none")
    epoch = max(node.leader_epoch for node in _live(cluster))
    leaders = [
        str(node.node_id) for node in _live(cluster) if (node.role, node.leader_epoch) == ("leader", epoch)
    ]
    _check_equal(f"the leader of epoch {epoch}", leaders, [] if wanted == "none" else [wanted])


def _one_leader_per_epoch(cluster: Cluster, arguments: Arguments) -> None:
    for epoch, leaders in cluster.checks.leaders.items():
        _check_equal(f"the number of leaders of epoch {epoch}", len(leaders), 1)


def _role(cluster: Cluster, arguments: Arguments) -> None:
    """`role 2 follower`."""
    for node_id in arguments.numbers("the nodes"):
        _check_equal(f"the role of node {node_id}", cluster.live(node_id).role, arguments.words[0])
    arguments.word("the role")


def _epoch(cluster: Cluster, arguments: Arguments) -> None:
    """`epoch 1,2 5`: in memory, and on disk as well."""
    node_ids, wanted = arguments.numbers("the nodes"), arguments.number("the epoch")
    for node_id in node_ids:
        stored = cluster.host(node_id).disk.state
        _check_equal(f"the epoch of node {node_id}", cluster.live(node_id).leader_epoch, wanted)
        _check_equal(f"the stored epoch of node {node_id}", stored and stored.leader_epoch, wanted)


def _follows(cluster: Cluster, arguments: Arguments) -> None:
    """`follows 2,3 1`: both are followers of node 1."""
    node_ids, leader_id = arguments.numbers("the nodes"), arguments.number("the leader")
    for node_id in node_ids:
        node = cluster.live(node_id)
        _check_equal(f"node {node_id}", (node.role, node.leader_id), ("follower", leader_id))


def _vote(cluster: Cluster, arguments: Arguments) -> None:
    """`vote 2 1`: on node 2's disk there is its vote for node 1; `vote 2 none`."""
    node_id, wanted = arguments.number("the node"), arguments.word("the candidate, or none")
    stored = cluster.host(node_id).disk.state
    voted = "none" if stored is None or stored.voted is None else key_text(stored.voted)
    _check_equal(f"the stored vote of node {node_id}", voted, wanted)


# The log


def _committed(cluster: Cluster, arguments: Arguments) -> None:
    """`committed x on 1,2`: each has applied that record."""
    value, node_ids = arguments.word("the record"), _on(arguments)
    for node_id in node_ids:
        if value not in _applied(cluster, node_id):
            raise ScenarioError(f"'{value}' is not committed on node {node_id}")


def _not_committed(cluster: Cluster, arguments: Arguments) -> None:
    value, node_ids = arguments.word("the record"), _on(arguments)
    for node_id in node_ids:
        if value in _applied(cluster, node_id):
            raise ScenarioError(f"'{value}' is committed on node {node_id}")


def _on(arguments: Arguments) -> list[int]:
    _check_equal("the word after the record", arguments.word("'on'"), "on")
    return arguments.numbers("the nodes")


def _applied(cluster: Cluster, node_id: int) -> list[str]:
    batches = cluster.host(node_id).disk.between(0, cluster.live(node_id).high_watermark)
    return [
        (record.value or b"").decode(errors="replace")
        for batch in batches
        if not batch.is_control
        for record in batch.records
    ]


def _log_end(cluster: Cluster, arguments: Arguments) -> None:
    node_ids, wanted = arguments.numbers("the nodes"), arguments.number("the offset")
    for node_id in node_ids:
        _check_equal(f"the log end of node {node_id}", cluster.host(node_id).disk.end_offset, wanted)


def _high_watermark(cluster: Cluster, arguments: Arguments) -> None:
    node_ids, wanted = arguments.numbers("the nodes"), arguments.number("the offset")
    for node_id in node_ids:
        _check_equal(f"the high watermark of node {node_id}", cluster.live(node_id).high_watermark, wanted)


def _same_logs(cluster: Cluster, arguments: Arguments) -> None:
    """`same-logs 1,2,3`: byte for byte."""
    node_ids = arguments.numbers("the nodes")
    logs = [b"".join(batch.data for batch in cluster.host(node_id).disk.batches) for node_id in node_ids]
    for node_id, found in zip(node_ids, logs, strict=True):
        if found != logs[0]:
            raise ScenarioError(f"the logs of nodes {node_ids[0]} and {node_id} differ")


# Everything else


def _voters(cluster: Cluster, arguments: Arguments) -> None:
    """`voters 1,2 1,2,3`: the set in force on nodes 1 and 2."""
    node_ids, wanted = arguments.numbers("the nodes"), arguments.word("the voters")
    for node_id in node_ids:
        found = voters_text(cluster.live(node_id).replica.voters)
        _check_equal(f"the voter set of node {node_id}", found, wanted)


def _read(cluster: Cluster, arguments: Arguments) -> None:
    """`read 7 pending|confirmed|refused`."""
    read_id, wanted = arguments.number("the read"), arguments.word("what became of it")
    _check_equal(f"read {read_id}", cluster.reads.get(read_id), wanted)


def _answer(cluster: Cluster, arguments: Arguments) -> None:
    """`answer refused leader=1`: the last answer to the script's own requests holds these words."""
    if not cluster.answers:
        raise ScenarioError("nothing was answered yet")
    wanted = [*arguments.rest(), *(f"{name}={value}" for name, value in arguments.options.items())]
    arguments.options.clear()
    missing = [word for word in wanted if word not in cluster.answers[-1].split()]
    if missing:
        raise ScenarioError(f"expected {' '.join(missing)} in the last answer: {cluster.answers[-1]}")


def _no_answer(cluster: Cluster, arguments: Arguments) -> None:
    """`no-answer 1`: a request of the script's own still waits at node 1."""
    asked = cluster.host(arguments.number("the node")).asked.values()
    _check_equal("waiting requests of the script", any(one.by_script for one in asked), True)


def _under_way(cluster: Cluster, arguments: Arguments) -> None:
    """`under-way 1->2 vote`: there is such a message."""
    selector = read_selector(arguments.rest())
    if not any(map(selector.matches, cluster.network.in_flight)):
        raise ScenarioError(f"no such message is under way; there are: {cluster.network.listing()}")


def _not_under_way(cluster: Cluster, arguments: Arguments) -> None:
    selector = read_selector(arguments.rest())
    found = [message.line for message in cluster.network.in_flight if selector.matches(message)]
    _check_equal("such messages under way", found, [])


def _down(cluster: Cluster, arguments: Arguments) -> None:
    """`down 1`: its process does not run."""
    for node_id in arguments.numbers("the nodes"):
        _check_equal(f"the process of node {node_id}", cluster.host(node_id).node, None)


CLAIMS: dict[str, Claim] = {
    "leader": _leader,
    "one-leader-per-epoch": _one_leader_per_epoch,
    "role": _role,
    "epoch": _epoch,
    "follows": _follows,
    "vote": _vote,
    "committed": _committed,
    "not-committed": _not_committed,
    "log-end": _log_end,
    "high-watermark": _high_watermark,
    "same-logs": _same_logs,
    "voters": _voters,
    "read": _read,
    "answer": _answer,
    "no-answer": _no_answer,
    "under-way": _under_way,
    "not-under-way": _not_under_way,
    "down": _down,
}
