"""The config of a new cluster, with comments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

# As in the examples: hosts that the nodes share need a port for each.
_CONTROLLER_PORT: Final = 9191
_BROKER_PORT: Final = 9092
_FIRST_BROKER_ID: Final = 11
_MOST_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCluster:
    """What the config is to hold. Nodes take turns on the `hosts`; `file_name` is for the commands in the comments."""

    cluster_id: str
    controllers: int
    brokers: int
    is_dynamic: bool
    hosts: Sequence[str]
    folder: str
    file_name: str

    @property
    def replicas(self) -> int:
        return min(self.brokers, _MOST_REPLICAS)


@dataclass(frozen=True, slots=True)
class _Node:
    node_id: int
    role: str
    host: str
    port: int

    @property
    def is_broker(self) -> bool:
        return self.role == "broker"


def config_text(new: NewCluster) -> str:
    """TOML, as `kquorum` reads it."""
    return "\n".join([*_head(new), *_defaults(new), *_node_tables(new)]) + "\n"


def next_commands(new: NewCluster) -> list[str]:
    """How the cluster begins: on one machine with one command, else node by node."""
    config = new.file_name
    if len(set(new.hosts)) == 1:
        return [f"kquorum up -c {config}"]
    controllers, others = _of_role(new, "controller"), _of_role(new, "broker")
    if not new.is_dynamic:
        lines = [f"kquorum format -c {config} --node {each.node_id}" for each in (*controllers, *others)]
    else:
        first, *later = controllers
        rest = (*later, *others)
        lines = [f"kquorum format -c {config} --node {first.node_id} --standalone"]
        lines += [
            f"kquorum format -c {config} --node {each.node_id} --no-initial-controllers" for each in rest
        ]
    starts = [f"kquorum start -c {config} --node {each.node_id}" for each in (*controllers, *others)]
    hosts = [each.host for each in (*controllers, *others)]
    width = max(map(len, (*lines, *starts)))
    return [
        f"{line:<{width}}   # on {host}"
        for line, host in zip((*lines, *starts), (*hosts, *hosts), strict=True)
    ]


def _of_role(new: NewCluster, role: str) -> list[_Node]:
    return [each for each in _nodes(new) if each.role == role]


def _nodes(new: NewCluster) -> Iterator[_Node]:
    """A port is used once on each host."""
    used = set[tuple[str, int]]()

    def next_port(host: str, port: int, step: int) -> int:
        while (host, port) in used:
            port += step
        used.add((host, port))
        return port

    for index in range(new.controllers):
        host = new.hosts[index % len(new.hosts)]
        yield _Node(index + 1, "controller", host, next_port(host, _CONTROLLER_PORT, 1))
    for index in range(new.brokers):
        host = new.hosts[index % len(new.hosts)]
        # Kafka's own tools expect 9092; 9093 is left to controllers by custom.
        yield _Node(_FIRST_BROKER_ID + index, "broker", host, next_port(host, _BROKER_PORT, 2))


def _head(new: NewCluster) -> Iterator[str]:
    may_fail = (new.controllers - 1) // 2
    voters = (
        "dynamic: its voters are in its log, and can be changed"
        if new.is_dynamic
        else "static: its voters are the controllers below"
    )
    nodes = f"{_counted(new.controllers, 'controller')} and {_counted(new.brokers, 'broker')}"
    yield f"# A cluster of {nodes}, written by `kquorum init`."
    yield f"# The quorum is {voters}; {may_fail} of the controllers may fail."
    yield "#"
    yield from (f"#     {line}" for line in next_commands(new))
    yield "#"
    yield "# The keys are Kafka's own (`kquorum configs keys` explains each). [defaults] hold for every node, a node's"
    yield "# own table wins, and {node.id} in a text stands for the node's id. Relative folders are beneath --data-dir"
    yield "# (the current directory without it)."
    yield ""
    yield "[cluster]"
    yield "# Each node's folder carries it, so that a node of another cluster is never taken for one of this."
    yield f'cluster.id = "{new.cluster_id}"'


def _defaults(new: NewCluster) -> Iterator[str]:
    yield ""
    yield "[defaults]"
    yield "# Where a node keeps its log; several folders may be separated by commas, as on several disks."
    yield f'log.dirs = "{new.folder}/node-{{node.id}}"'
    yield ""
    yield "# Which of the listeners belong to controllers; brokers use the first name to find them."
    yield 'controller.listener.names = "CONTROLLER"'
    yield ""
    if new.is_dynamic:
        servers = ",".join(f"{each.host}:{each.port}" for each in _of_role(new, "controller"))
        yield "# Where to ask for the leader, in place of controller.quorum.voters."
        yield f'controller.quorum.bootstrap.servers = "{servers}"'
        yield ""
        yield "# A controller that is no voter yet becomes one by itself once it has caught up; without this,"
        yield "# `kquorum quorum add-voter ID` makes it one."
        yield "controller.quorum.auto.join.enable = true"
    else:
        yield "# The voters are the controllers below. To name them by hand, as a Kafka config must:"
        voters = ",".join(f"{each.node_id}@{each.host}:{each.port}" for each in _of_role(new, "controller"))
        yield f'# controller.quorum.voters = "{voters}"'
    yield ""
    yield "# How long a follower waits for its leader before it becomes a candidate itself."
    yield "controller.quorum.election.timeout.ms = 1000"
    yield "controller.quorum.fetch.timeout.ms = 2000"
    if new.brokers:
        yield from _broker_defaults(new)


def _broker_defaults(new: NewCluster) -> Iterator[str]:
    yield ""
    yield "# How long a broker may be silent before it is fenced and its partitions get other leaders."
    yield "broker.heartbeat.interval.ms = 2000"
    yield "broker.session.timeout.ms = 9000"
    yield ""
    yield "# What a topic gets whose creator does not say."
    yield "num.partitions = 3"
    yield f"default.replication.factor = {new.replicas}"
    in_sync = max(new.replicas - 1, 1)
    away = f"{new.replicas - in_sync} of {new.replicas} may be away"
    yield f"# A write with acks=all needs so many replicas in sync: {away}."
    yield f"min.insync.replicas = {in_sync}"
    yield ""
    yield "# The same for the topics of committed offsets and of transactions."
    yield f"offsets.topic.replication.factor = {new.replicas}"
    yield f"transaction.state.log.replication.factor = {new.replicas}"
    yield f"transaction.state.log.min.isr = {in_sync}"
    yield ""
    yield "# Who may do what: off until you turn it on (docs/authorization.md of kquorum). The listeners below have"
    yield "# neither TLS nor passwords (docs/security.md): for a trusted network only."
    yield '# authorizer.class.name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"'
    yield '# super.users = "User:admin"'


def _node_tables(new: NewCluster) -> Iterator[str]:
    racks = len(set(new.hosts)) > 1
    for role in ("controller", "broker"):
        nodes = _of_role(new, role)
        if not nodes:
            continue
        yield ""
        yield f"# ---- {role}s"
        if role == "broker" and racks:
            yield "# The replicas of a partition are spread over racks: here a host is one."
        for each in nodes:
            yield ""
            yield "[[nodes]]"
            yield f"node.id = {each.node_id}"
            yield f'process.roles = "{role}"'
            if each.is_broker and racks:
                yield f'broker.rack = "{each.host}"'
            name = "PLAINTEXT" if each.is_broker else "CONTROLLER"
            yield f'listeners = "{name}://{each.host}:{each.port}"'
            # The listener's port decides the others, so that they differ wherever listeners do.
            grpc, metrics = (
                (each.port + 100, each.port + 300)
                if not each.is_broker
                else (each.port + 219, each.port + 319)
            )
            yield f'kquorum.grpc.listener = "{each.host}:{grpc}"'
            yield f'kquorum.metrics.listener = "{each.host}:{metrics}"'


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
