"""From a node's config, and what the system grants, to the limits of its listeners (docs/network.md)."""

import logging
import resource
from dataclasses import replace

from kquorum.metadata.adapters.controller_channel import SHARE_OF_ALL
from kquorum.metadata.controller_apis import FORWARDABLE_APIS
from kquorum.network.limits import NO_LIMIT, BudgetLimits, ConnectionLimits, GrpcLimits, ServerLimits
from kquorum.network.server import SharedLimits
from kquorum.node.config.addresses import Listener
from kquorum.node.config.model import NodeConfig
from kquorum.node.config.network_keys import CREATION_RATE
from kquorum.node.config.security_keys import GRPC
from kquorum.wire.protocol.api_keys import ApiKey

log = logging.getLogger("node.servers")

# Descriptors that no client may have: of the log, of connections to other nodes, of the metrics.
_RESERVED_DESCRIPTORS = 256
_DESCRIPTORS_MAX = 1_048_576
# Of the descriptors that connections may have, for gRPC: tools, and members that are no brokers of Kafka's.
_GRPC_SHARE = 4
# Of all descriptors, for segments of partitions: one that is closed is opened again at its next use.
_SEGMENTS_SHARE = 4
# The client's connection, and both ends of that between the front and gRPC.
_FILES_OF_GRPC_CONNECTION = 3
# An envelope is that much larger than the request inside, at the most: headers, the client's principal and address.
_ENVELOPE_BYTES = 65_536
# At a controllers' listener. Nodes send heartbeats every few seconds, or have a Fetch under way.
_EVICTED_AFTER_IDLE_MS = 10_000
# Each entry takes the active controller up to some 40 microseconds, in which it does nothing else. Topics are made and
# deleted for less.
_COSTLY = FORWARDABLE_APIS - {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS}
# 400,000 by default: 100,000 partitions that one broker leads, each with three members of its in-sync set. The garbage
# collector goes through so much in some 30 to 45 ms, through twice as much in 80 to 100.
_TIMES_AS_MANY_PARTITIONS = 2
# Of these a request has a few entries: of listeners, features, directories, voters, and of one partition. A node has
# as many elements as that to leave out, should a newer one send them.
_SMALL = (
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UPDATE_RAFT_VOTER,
    ApiKey.VOTE,
)
# Of these the group coordinator handles a request as a whole, some 10 to 50 microseconds an entry.
_OF_GROUPS = (
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.DELETE_GROUPS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.HEARTBEAT,
    ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.LIST_GROUPS,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.OFFSET_FETCH,
    ApiKey.SYNC_GROUP,
)
_GROUP_ELEMENTS = 20_000
# The transaction coordinator looks each partition up, and brokers name the transactions of their producers.
_OF_TRANSACTIONS = (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT)
_TRANSACTION_ELEMENTS = 10_000
# Of these a broker looks up each partition, some 5 microseconds each beside what is done in slices.
_OF_RECORDS = (
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DELETE_RECORDS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.PRODUCE,
    ApiKey.WRITE_TXN_MARKERS,
)
_RECORDS_ELEMENTS = 20_000
_SMALL_ELEMENTS, _SMALL_BYTES = 4_096, 1_048_576
# Kafka's brokers assign 2,250 replicas in one request.
_ASSIGNED_ELEMENTS = 10_000
# Long names and values, more than any lawful request of the other APIs has.
_USUAL_BYTES = 16_777_216
_WITHOUT_USUAL = (ApiKey.PRODUCE, ApiKey.ENVELOPE, ApiKey.ALTER_PARTITION)


def shared_limits(config: NodeConfig) -> SharedLimits:
    """What the listeners of one role share."""
    connections = _connection_limits(config)
    said = config.queued_max_request_bytes
    budget = BudgetLimits(
        max_bytes=said if said > 0 else BudgetLimits().max_bytes, max_requests=config.queued_max_requests
    )
    return SharedLimits(connections, budget)


def _connection_limits(config: NodeConfig) -> ConnectionLimits:
    overrides = {
        address: each.limit for each in config.max_connections_per_ip_overrides for address in each.addresses
    }
    return ConnectionLimits(
        max_connections=min(config.max_connections, connections_that_fit(config)),
        max_connections_per_address=config.max_connections_per_ip,
        overrides=overrides,
        max_connection_creation_rate=config.max_connection_creation_rate,
    )


def server_limits(config: NodeConfig, listener: Listener) -> ServerLimits:
    is_of_controllers = listener.name in config.controller_listener_names
    most = config.kquorum_request_max_elements
    by_api: dict[int, int] = dict.fromkeys(_COSTLY, most // 4)
    by_api |= dict.fromkeys(_SMALL, min(most, _SMALL_ELEMENTS))
    by_api |= dict.fromkeys(_OF_GROUPS, min(most, _GROUP_ELEMENTS))
    by_api |= dict.fromkeys(_OF_TRANSACTIONS, min(most, _TRANSACTION_ELEMENTS))
    by_api |= dict.fromkeys(_OF_RECORDS, min(most, _RECORDS_ELEMENTS))
    bytes_by_api: dict[int, int] = {
        api_key: _USUAL_BYTES for api_key in ApiKey if api_key not in _WITHOUT_USUAL
    }
    bytes_by_api |= dict.fromkeys(_SMALL, _SMALL_BYTES)
    if is_of_controllers:
        # The quorum's own, which are of one partition.
        by_api[ApiKey.FETCH] = by_api[ApiKey.ENVELOPE] = min(most, _SMALL_ELEMENTS)
        bytes_by_api[ApiKey.FETCH] = _SMALL_BYTES
        by_api[ApiKey.ASSIGN_REPLICAS_TO_DIRS] = min(most, _ASSIGNED_ELEMENTS)
        # A broker of Kafka tells of all its partitions in one request.
        by_api[ApiKey.ALTER_PARTITION] = most * _TIMES_AS_MANY_PARTITIONS
    return ServerLimits(
        # A broker forwards what a client was allowed to send.
        max_request_bytes=config.socket_request_max_bytes + (_ENVELOPE_BYTES if is_of_controllers else 0),
        max_request_elements=most,
        max_elements_by_api=by_api,
        max_bytes_by_api=bytes_by_api,
        max_idle_ms=config.connections_max_idle_ms,
        max_connections=min(
            config.limit_of(listener.name, "max.connections"),
            # Without this a listener that the node's limit does not hold for could take the last descriptor.
            connections_that_fit(config),
        ),
        max_open_files=_files_before_refusal(),
        max_connection_creation_rate=config.limit_of(listener.name, "max.connection.creation.rate"),
        evicts_after_idle_ms=_EVICTED_AFTER_IDLE_MS if is_of_controllers else None,
        frame_timeout_ms=config.kquorum_frame_timeout_ms,
        write_timeout_ms=config.kquorum_output_timeout_ms,
        request_timeout_ms=config.kquorum_unanswered_request_timeout_ms,
        # Kafka has one request of a connection in hand. A Fetch may be answered with 55 MB: a client that sends several
        # and does not read would hold so much for each.
        max_in_flight_by_api={ApiKey.ENVELOPE: SHARE_OF_ALL} if is_of_controllers else {ApiKey.FETCH: 1},
    )


def is_protected(config: NodeConfig, listener: Listener, listeners: int) -> bool:
    """Kafka's rule: the listener among brokers, where it is not the only one."""
    name = config.inter_broker_listener_name
    return listeners > 1 and name is not None and name.upper() == listener.name


def grpc_limits(config: NodeConfig) -> GrpcLimits:
    defaults = GrpcLimits()
    rate = config.limit_of(GRPC, CREATION_RATE)
    return GrpcLimits(
        max_connections=_grpc_connections(config),
        max_open_files=_files_before_refusal(),
        max_connection_creation_rate=defaults.max_connection_creation_rate if rate == NO_LIMIT else rate,
        max_idle_ms=min(config.connections_max_idle_ms, NO_LIMIT),
        write_timeout_ms=config.kquorum_output_timeout_ms,
        max_calls_per_second=config.kquorum_grpc_max_calls_per_second,
        max_calls_per_second_of_connection=max(config.kquorum_grpc_max_calls_per_second // 2, 1),
        max_open_calls=config.kquorum_grpc_max_open_calls,
        max_open_calls_per_client=config.kquorum_grpc_max_open_calls_per_client,
    )


def grpc_shared_limits(config: NodeConfig) -> SharedLimits:
    """The gRPC listener counts for itself: what it may have was taken from what the others may."""
    connections = replace(_connection_limits(config), max_connections=_grpc_connections(config))
    return SharedLimits(connections)


def connections_that_fit(config: NodeConfig) -> int:
    """How many connections of Kafka's protocol the descriptors of this process allow."""
    return _for_all_listeners(open_files()) - _grpc_connections(config) * _FILES_OF_GRPC_CONNECTION


def _grpc_connections(config: NodeConfig) -> int:
    if config.kquorum_grpc_listener is None:
        return 0
    for_all = _for_all_listeners(open_files())
    said = config.limit_of(GRPC, "max.connections")
    if said == NO_LIMIT:
        share = for_all // _GRPC_SHARE // _FILES_OF_GRPC_CONNECTION
        return min(max(share, 1), GrpcLimits().max_connections)
    return min(said, max(for_all // 2 // _FILES_OF_GRPC_CONNECTION, 1))


def _for_all_listeners(open_files: int) -> int:
    return max(open_files - _RESERVED_DESCRIPTORS, open_files // 2)


def _files_before_refusal() -> int:
    """With so many open no listener accepts a client: those of two roles, and one that the node's limit does not hold
    for, could take more together than there is. Half of the reserve is for what is open besides connections."""
    most = open_files()
    return most - (most - _for_all_listeners(most)) // 2


def segments_open() -> int:
    """How many segments of partitions may have their file open, of all log directories together."""
    return max(open_files() // _SEGMENTS_SHARE, 1)


def open_files() -> int:
    """How many files this process may have open; the soft limit is raised as a JVM would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError) as error:
            log.warning("the limit of open files stays at %d: %s", soft, error)
    return _DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else soft
