"""The rules that take more than one key, or more than one node, to break (Kafka's, from KafkaConfig.validateValues)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kquorum.broker.fetch.replica_selection import SELECTORS
from kquorum.broker.groups.assignors import ASSIGNORS
from kquorum.node.config.addresses import WILDCARD_HOSTS, format_address
from kquorum.node.config.authorizer_keys import authorizer_problems
from kquorum.node.config.model import NodeConfig
from kquorum.node.config.network_keys import limit_problems, listener_of_limit
from kquorum.node.config.security_keys import GRPC, key_problems, listener_of, map_problems


def node_problems(node: NodeConfig) -> Iterator[tuple[str, str]]:
    """(key at fault, message) of every rule which one node breaks."""
    yield from _identity_problems(node)
    yield from _listener_problems(node)
    yield from _quorum_problems(node)
    if node.is_broker:
        yield from _broker_problems(node)


def cluster_problems(nodes: Sequence[NodeConfig]) -> Iterator[tuple[int, str, str]]:
    """(index of the node, key at fault, message) of every rule which nodes break together."""
    yield from _shared_ids(nodes)
    yield from _shared_folders(nodes)
    yield from _shared_ports(nodes)
    yield from _unknown_listeners(nodes)
    cluster_ids = {node.cluster_id for node in nodes}
    if len(cluster_ids) > 1:
        listed = ", ".join(sorted(str(cluster_id) for cluster_id in cluster_ids))
        yield 0, "cluster.id", f"the nodes of one config have different cluster.id: {listed}"


def _identity_problems(node: NodeConfig) -> Iterator[tuple[str, str]]:
    if node.broker_id is not None and node.broker_id != node.node_id:
        yield "broker.id", f"broker.id is {node.broker_id}, but node.id is {node.node_id}: they must be equal"
    if len(set(node.process_roles)) != len(node.process_roles):
        yield "process.roles", "process.roles names a role twice"
    if len(set(node.log_dirs)) != len(node.log_dirs):
        yield "log.dirs", "log.dirs names a folder twice"


def _listener_problems(node: NodeConfig) -> Iterator[tuple[str, str]]:
    names = [listener.name for listener in node.listeners]
    if len(set(names)) != len(names):
        yield "listeners", "listeners has two listeners of one name"
    mapped = (*names, *node.controller_listener_names)
    for message in map_problems(node.listener_security_protocol_map, mapped):
        yield "listener.security.protocol.map", f"listener.security.protocol.map: {message}"
    yield from key_problems(dict(node.security_keys))
    yield from limit_problems(dict(node.listener_limits))
    yield from authorizer_problems(
        node, [name for name in node.controller_listener_names if node.protocol_of(name) == "PLAINTEXT"]
    )
    if not node.controller_listener_names:
        yield (
            "controller.listener.names",
            "controller.listener.names is empty; it names the listeners of controllers",
        )
    if node.is_broker and not node.is_controller:
        for name in sorted(set(names) & set(node.controller_listener_names)):
            yield (
                "listeners",
                f"listeners of a broker must not have {name}, which controller.listener.names gives to controllers",
            )
    if node.is_controller:
        yield from _controller_listener_problems(node, names)


def _controller_listener_problems(node: NodeConfig, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in node.controller_listener_names:
        if name not in names:
            yield (
                "listeners",
                f"listeners of a controller must have {name}, which controller.listener.names names",
            )
    if not node.is_broker:
        for listener in node.broker_listeners:
            message = f"listeners of a node that is only a controller has {listener.name}, "
            yield "listeners", message + "which controller.listener.names does not name"


def _quorum_problems(node: NodeConfig) -> Iterator[tuple[str, str]]:
    key, voter_ids = "controller.quorum.voters", [voter.id for voter in node.controller_quorum_voters]
    if not voter_ids and not node.controller_quorum_bootstrap_servers:
        message = f"{key} and controller.quorum.bootstrap.servers are both empty; one of them must say where to look"
        names = node.controller_listener_names
        if any(each.host in WILDCARD_HOSTS for each in node.listeners if each.name in names):
            message += ", for an address for all (0.0.0.0) is none that voters could be derived from"
        yield key, message
    if node.controller_quorum_auto_join_enable and not node.is_controller:
        yield (
            "controller.quorum.auto.join.enable",
            "controller.quorum.auto.join.enable is for controllers, and process.roles lacks controller: "
            "take it out here, and set it for the controllers or in [defaults]",
        )
    if len(set(voter_ids)) != len(voter_ids):
        yield key, f"{key} names a voter twice"
    if node.is_controller and voter_ids and node.node_id not in voter_ids:
        yield key, f"{key} must contain node {node.node_id}, a controller; it has {_ids(voter_ids)}"
    if not node.is_controller and node.node_id in voter_ids:
        yield (
            key,
            f"{key} must not contain node {node.node_id}, which is only a broker; it has {_ids(voter_ids)}",
        )


def _broker_problems(node: NodeConfig) -> Iterator[tuple[str, str]]:
    if not node.broker_listeners:
        yield "listeners", "a broker needs a listener for clients; all of listeners are controller listeners"
    for listener in node.advertised_listeners:
        if listener.host == "0.0.0.0":  # noqa: S104 - refused here
            yield (
                "advertised.listeners",
                f"{listener} cannot be advertised: no other machine can connect to 0.0.0.0",
            )
    interval, session = node.broker_heartbeat_interval_ms, node.broker_session_timeout_ms
    if interval >= session:
        yield (
            "broker.heartbeat.interval.ms",
            f"broker.heartbeat.interval.ms ({interval}) must be less than broker.session.timeout.ms ({session})",
        )
    for assignor in node.group_consumer_assignors:
        if assignor not in ASSIGNORS:
            yield (
                "group.consumer.assignors",
                f"group.consumer.assignors has {assignor}: kquorum cannot run a Java class, and has the assignors "
                f"{' and '.join(ASSIGNORS)}",
            )
    selector = node.replica_selector_class
    if selector is not None and selector not in SELECTORS:
        yield (
            "replica.selector.class",
            f"replica.selector.class is {selector}: kquorum cannot run a Java class, "
            f"and has the rules of {' and '.join(SELECTORS)}",
        )
    name = node.inter_broker_listener_name
    if name is not None and name.upper() not in {listener.name for listener in node.broker_listeners}:
        yield (
            "inter.broker.listener.name",
            f"inter.broker.listener.name is {name}, which is no broker listener",
        )


def _shared_ids(nodes: Sequence[NodeConfig]) -> Iterator[tuple[int, str, str]]:
    first: dict[int, int] = {}
    for index, node in enumerate(nodes):
        if node.node_id in first:
            yield index, "node.id", f"node {node.node_id} is there twice"
        first.setdefault(node.node_id, index)


def _shared_folders(nodes: Sequence[NodeConfig]) -> Iterator[tuple[int, str, str]]:
    owner: dict[object, int] = {}
    for index, node in enumerate(nodes):
        for folder in dict.fromkeys((*node.log_dirs, node.metadata_log_dir)):
            other = owner.setdefault(folder, node.node_id)
            if other != node.node_id:
                yield index, "log.dirs", f"node {node.node_id} has the folder of node {other}: {folder}"


def _shared_ports(nodes: Sequence[NodeConfig]) -> Iterator[tuple[int, str, str]]:
    """Two sockets on one port; an address of every interface clashes with each. Port 0 means any free one."""
    taken: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for index, node in enumerate(nodes):
        sockets = [("listeners", listener.name, listener.host, listener.port) for listener in node.listeners]
        for key, address in (
            ("kquorum.grpc.listener", node.kquorum_grpc_listener),
            ("kquorum.metrics.listener", node.kquorum_metrics_listener),
        ):
            if address is not None:
                sockets.append((key, key, address.host, address.port))
        for key, name, host, port in sockets:
            mine = f"{name} of node {node.node_id}"
            for other_host, other in taken[port] if port else ():
                if host == other_host or WILDCARD_HOSTS & {host, other_host}:
                    yield index, key, f"{mine} has the port of {other}: {format_address(host, port)}"
            taken[port].append((host, mine))


def _unknown_listeners(nodes: Sequence[NodeConfig]) -> Iterator[tuple[int, str, str]]:
    """Limits, or keys of TLS and SASL, of a listener which no node has would have no effect, without a message."""
    listeners = {listener.name for node in nodes for listener in node.listeners}
    known = listeners | {GRPC, *(name for node in nodes for name in node.controller_listener_names)}
    for index, node in enumerate(nodes):
        of_limits = ((key, listener_of_limit(key)) for key, _ in node.listener_limits)
        for key, name in (*((key, listener_of(key)) for key, _ in node.security_keys), *of_limits):
            if name is not None and name not in known:
                yield index, key, f"{key} is for a listener {name}; there are {', '.join(sorted(known))}"


def _ids(voter_ids: Sequence[int]) -> str:
    return ", ".join(str(voter_id) for voter_id in voter_ids)
