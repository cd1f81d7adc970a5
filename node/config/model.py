"""The config of a node and of a cluster. Each field is a key of the table of configs (metadata.configs), which has its
default and its bounds; the annotation here says what the text is parsed to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from kquorum.node.config.addresses import (
    HostPort,
    Listener,
    VoterAddress,
    format_address,
    parse_host_port,
    parse_listener,
    parse_voter,
)
from kquorum.node.config.authorizer_keys import AuthorizerKeys
from kquorum.node.config.config_key import REQUIRED, config_key
from kquorum.node.config.errors import ConfigError, Place, Problem
from kquorum.node.config.network_keys import NetworkKeys
from kquorum.node.config.security_keys import is_secret_key, listener_keys, protocol_name
from kquorum.node.config.values import as_flag, as_optional, as_tuple, as_upper_names, check_cluster_id

Role = Literal["broker", "controller"]
Names = Annotated[tuple[str, ...], BeforeValidator(as_upper_names)]
Words = Annotated[tuple[str, ...], BeforeValidator(as_tuple(str.strip))]
Flag = Annotated[bool, BeforeValidator(as_flag)]
T = TypeVar("T")
Listeners = Annotated[tuple[Listener, ...], BeforeValidator(as_tuple(parse_listener))]
ClusterId = Annotated[str, AfterValidator(check_cluster_id)]
Address = Annotated[HostPort | None, BeforeValidator(as_optional(parse_host_port))]


def _first_log_dir(data: dict[str, Any]) -> Path:
    first: Path = data["log_dirs"][0]
    return first


def _listeners(data: dict[str, Any]) -> tuple[Listener, ...]:
    listeners: tuple[Listener, ...] = data["listeners"]
    return listeners


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, HostPort):
        return format_address(value.host, value.port)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return ",".join(map(_as_text, value))
    return "" if value is None else str(value)


class NodeConfig(NetworkKeys, AuthorizerKeys):
    """One node, defaults filled in. The names are Kafka's with underscores; times are in milliseconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    cluster_id: ClusterId | None = config_key("cluster.id")
    node_id: int = config_key("node.id", unless_set=REQUIRED)
    broker_id: int | None = config_key("broker.id", unless_set=None)
    process_roles: Annotated[tuple[Role, ...], BeforeValidator(as_tuple(str))] = config_key(
        "process.roles", unless_set=REQUIRED
    )
    broker_rack: str | None = config_key("broker.rack")

    listeners: Listeners = config_key("listeners")
    advertised_listeners: Listeners = config_key("advertised.listeners", derived=_listeners)
    controller_listener_names: Names = config_key("controller.listener.names", unless_set=())
    inter_broker_listener_name: str | None = config_key("inter.broker.listener.name")
    # Not set: a listener's name says its protocol, and any other name is PLAINTEXT (Kafka wants CONTROLLER mapped).
    listener_security_protocol_map: Names = config_key("listener.security.protocol.map", unless_set=())
    request_timeout_ms: int = config_key("request.timeout.ms")

    log_dirs: Annotated[tuple[Path, ...], BeforeValidator(as_tuple(Path))] = config_key(
        "log.dirs", unless_set=REQUIRED
    )
    metadata_log_dir: Path = config_key("metadata.log.dir", derived=_first_log_dir)
    metadata_log_segment_bytes: int = config_key("metadata.log.segment.bytes")
    metadata_log_segment_ms: int = config_key("metadata.log.segment.ms")
    # Of the log and of snapshots.
    metadata_log_compression: Literal["none", "lz4"] = config_key("metadata.log.compression")
    metadata_max_idle_interval_ms: int = config_key("metadata.max.idle.interval.ms")

    # A snapshot is due after so many bytes of committed records, or (0: never) after so long with any.
    metadata_log_max_record_bytes_between_snapshots: int = config_key(
        "metadata.log.max.record.bytes.between.snapshots"
    )
    metadata_log_max_snapshot_interval_ms: int = config_key("metadata.log.max.snapshot.interval.ms")
    # Of the log and all snapshots together, and of the oldest snapshot: beyond, the oldest goes.
    metadata_max_retention_bytes: int = config_key("metadata.max.retention.bytes")
    metadata_max_retention_ms: int = config_key("metadata.max.retention.ms")
    # What is kept for the writes that a full disk must not stop; 0: nothing.
    kquorum_reserved_space_bytes: int = config_key("kquorum.reserved.space.bytes")

    controller_quorum_voters: Annotated[tuple[VoterAddress, ...], BeforeValidator(as_tuple(parse_voter))] = (
        config_key("controller.quorum.voters")
    )
    controller_quorum_bootstrap_servers: Annotated[
        tuple[HostPort, ...], BeforeValidator(as_tuple(parse_host_port))
    ] = config_key("controller.quorum.bootstrap.servers")
    controller_quorum_auto_join_enable: Flag = config_key("controller.quorum.auto.join.enable")
    controller_quorum_election_timeout_ms: int = config_key("controller.quorum.election.timeout.ms")
    controller_quorum_fetch_timeout_ms: int = config_key("controller.quorum.fetch.timeout.ms")
    controller_quorum_election_backoff_max_ms: int = config_key("controller.quorum.election.backoff.max.ms")
    controller_quorum_request_timeout_ms: int = config_key("controller.quorum.request.timeout.ms")
    controller_quorum_retry_backoff_ms: int = config_key("controller.quorum.retry.backoff.ms")

    broker_heartbeat_interval_ms: int = config_key("broker.heartbeat.interval.ms")
    broker_session_timeout_ms: int = config_key("broker.session.timeout.ms")
    log_dir_failure_timeout_ms: int = config_key("log.dir.failure.timeout.ms")
    initial_broker_registration_timeout_ms: int = config_key("initial.broker.registration.timeout.ms")
    controlled_shutdown_enable: Flag = config_key("controlled.shutdown.enable")

    num_replica_fetchers: int = config_key("num.replica.fetchers")
    replica_fetch_backoff_ms: int = config_key("replica.fetch.backoff.ms")
    replica_fetch_max_bytes: int = config_key("replica.fetch.max.bytes")
    replica_fetch_min_bytes: int = config_key("replica.fetch.min.bytes")
    replica_fetch_response_max_bytes: int = config_key("replica.fetch.response.max.bytes")
    replica_fetch_wait_max_ms: int = config_key("replica.fetch.wait.max.ms")
    replica_high_watermark_checkpoint_interval_ms: int = config_key(
        "replica.high.watermark.checkpoint.interval.ms"
    )
    replica_lag_time_max_ms: int = config_key("replica.lag.time.max.ms")
    replica_socket_timeout_ms: int = config_key("replica.socket.timeout.ms")
    fetch_max_bytes: int = config_key("fetch.max.bytes")
    max_incremental_fetch_session_cache_slots: int = config_key("max.incremental.fetch.session.cache.slots")

    log_retention_check_interval_ms: int = config_key("log.retention.check.interval.ms")
    log_cleaner_enable: Flag = config_key("log.cleaner.enable")
    log_cleaner_backoff_ms: int = config_key("log.cleaner.backoff.ms")
    log_cleaner_dedupe_buffer_size: int = config_key("log.cleaner.dedupe.buffer.size")
    log_cleaner_io_max_bytes_per_second: float = config_key("log.cleaner.io.max.bytes.per.second")
    log_flush_offset_checkpoint_interval_ms: int = config_key("log.flush.offset.checkpoint.interval.ms")
    log_flush_start_offset_checkpoint_interval_ms: int = config_key(
        "log.flush.start.offset.checkpoint.interval.ms"
    )
    log_initial_task_delay_ms: int = config_key("log.initial.task.delay.ms")
    producer_id_expiration_ms: int = config_key("producer.id.expiration.ms")
    producer_id_expiration_check_interval_ms: int = config_key("producer.id.expiration.check.interval.ms")

    group_initial_rebalance_delay_ms: int = config_key("group.initial.rebalance.delay.ms")
    group_min_session_timeout_ms: int = config_key("group.min.session.timeout.ms")
    group_max_session_timeout_ms: int = config_key("group.max.session.timeout.ms")
    group_max_size: int = config_key("group.max.size")
    group_coordinator_rebalance_protocols: Words = config_key("group.coordinator.rebalance.protocols")
    group_consumer_max_size: int = config_key("group.consumer.max.size")
    group_consumer_assignors: Words = config_key("group.consumer.assignors")
    group_consumer_migration_policy: str = config_key("group.consumer.migration.policy")
    group_consumer_regex_refresh_interval_ms: int = config_key("group.consumer.regex.refresh.interval.ms")
    offset_metadata_max_bytes: int = config_key("offset.metadata.max.bytes")
    offsets_commit_timeout_ms: int = config_key("offsets.commit.timeout.ms")
    offsets_load_buffer_size: int = config_key("offsets.load.buffer.size")
    offsets_retention_check_interval_ms: int = config_key("offsets.retention.check.interval.ms")
    offsets_retention_minutes: int = config_key("offsets.retention.minutes")
    offsets_topic_compression_codec: int = config_key("offsets.topic.compression.codec")

    transaction_max_timeout_ms: int = config_key("transaction.max.timeout.ms")
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = config_key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    )
    transactional_id_expiration_ms: int = config_key("transactional.id.expiration.ms")
    transaction_remove_expired_transaction_cleanup_interval_ms: int = config_key(
        "transaction.remove.expired.transaction.cleanup.interval.ms"
    )
    transaction_state_log_load_buffer_size: int = config_key("transaction.state.log.load.buffer.size")
    add_partitions_to_txn_retry_backoff_ms: int = config_key("add.partitions.to.txn.retry.backoff.ms")
    add_partitions_to_txn_retry_backoff_max_ms: int = config_key("add.partitions.to.txn.retry.backoff.max.ms")

    num_partitions: int = config_key("num.partitions")
    default_replication_factor: int = config_key("default.replication.factor")
    min_insync_replicas: int = config_key("min.insync.replicas")
    auto_create_topics_enable: Flag = config_key("auto.create.topics.enable")
    delete_topic_enable: Flag = config_key("delete.topic.enable")
    unclean_leader_election_enable: Flag = config_key("unclean.leader.election.enable")
    unclean_leader_election_interval_ms: int = config_key("unclean.leader.election.interval.ms")
    auto_leader_rebalance_enable: Flag = config_key("auto.leader.rebalance.enable")
    leader_imbalance_check_interval_seconds: int = config_key("leader.imbalance.check.interval.seconds")

    # How much of its controller_mutation_rate a client may save up: so many samples of so many seconds.
    controller_quota_window_num: int = config_key("controller.quota.window.num")
    controller_quota_window_size_seconds: int = config_key("controller.quota.window.size.seconds")

    # Over how much time the client quotas of bytes and of requests are measured.
    quota_window_num: int = config_key("quota.window.num")
    quota_window_size_seconds: int = config_key("quota.window.size.seconds")

    alter_log_dirs_replication_quota_window_num: int = config_key(
        "alter.log.dirs.replication.quota.window.num"
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = config_key(
        "alter.log.dirs.replication.quota.window.size.seconds"
    )
    replica_selector_class: str | None = config_key("replica.selector.class")

    # The same for the throttles of replication.
    replication_quota_window_num: int = config_key("replication.quota.window.num")
    replication_quota_window_size_seconds: int = config_key("replication.quota.window.size.seconds")

    # The same on all nodes; without it there are no delegation tokens.
    delegation_token_secret_key: str | None = config_key("delegation.token.secret.key")
    delegation_token_max_lifetime_ms: int = config_key("delegation.token.max.lifetime.ms")
    delegation_token_expiry_time_ms: int = config_key("delegation.token.expiry.time.ms")
    delegation_token_expiry_check_interval_ms: int = config_key("delegation.token.expiry.check.interval.ms")
    kquorum_delegation_token_max_per_owner: int = config_key("kquorum.delegation.token.max.per.owner")

    # What the file says of TLS and SASL (see node.config.security_keys), as text, with secrets among it.
    security_keys: tuple[tuple[str, str], ...] = Field((), repr=False)
    kquorum_allow_exposed_log_dirs: Flag = config_key("kquorum.allow.exposed.log.dirs")
    kquorum_allow_unsecured_listeners: Flag = config_key("kquorum.allow.unsecured.listeners")
    kquorum_grpc_security: Literal["plaintext", "ssl"] = config_key("kquorum.grpc.security")

    # What the file says of the keys that are read by name, and of those that have no effect: DescribeConfigs has both.
    other_keys: tuple[tuple[str, str], ...] = ()

    kquorum_grpc_listener: Address = config_key("kquorum.grpc.listener")
    kquorum_metrics_listener: Address = config_key("kquorum.metrics.listener")

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        """The listeners for quorum and brokers, in the order of `controller.listener.names`."""
        by_name = {listener.name: listener for listener in self.listeners}
        return tuple(by_name[name] for name in self.controller_listener_names if name in by_name)

    @property
    def broker_listeners(self) -> tuple[Listener, ...]:
        """The listeners for clients and other brokers."""
        return tuple(item for item in self.listeners if item.name not in self.controller_listener_names)

    def protocol_of(self, listener_name: str) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return protocol_name(self.listener_security_protocol_map, listener_name)

    def security_of(self, listener_name: str) -> dict[str, str]:
        """The keys of TLS and SASL as they hold for one listener; for the eyes of the network alone."""
        return listener_keys(dict(self.security_keys), listener_name, self.protocol_of(listener_name))

    def as_kafka_keys(self) -> dict[str, str]:
        """What the config says of each of Kafka's keys that was set in it, as text; passwords and keys of TLS and SASL
        are left out."""
        fields = type(self).model_fields
        shown = {key: value for key, value in self.security_keys if not is_secret_key(key)}
        return (
            dict(self.other_keys)
            | shown
            | {
                alias: _as_text(getattr(self, name))
                for name in sorted(self.model_fields_set)
                if (alias := fields[name].alias) is not None
            }
        )

    @property
    def controller_addresses(self) -> tuple[HostPort, ...]:
        """Where a controller may be found: the voters, then the bootstrap servers."""
        voters = tuple(HostPort(voter.host, voter.port) for voter in self.controller_quorum_voters)
        return voters + self.controller_quorum_bootstrap_servers


# Key -> field of NodeConfig.
KNOWN_KEYS: Mapping[str, str] = {
    field.alias: name for name, field in NodeConfig.model_fields.items() if field.alias is not None
}


class ClusterConfig(BaseModel):
    """All nodes of one file, ascending by id; `warnings` tells what in it has no effect."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path
    cluster_id: str | None
    nodes: tuple[NodeConfig, ...]
    warnings: tuple[str, ...] = ()

    def node(self, node_id: int) -> NodeConfig:
        """Raises ConfigError, naming the nodes there are, when the config lacks this one."""
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        there = ", ".join(str(node.node_id) for node in self.nodes)
        raise ConfigError([Problem(f"there is no node {node_id}; the nodes are {there}", Place(self.path))])

    @property
    def controllers(self) -> tuple[NodeConfig, ...]:
        return tuple(node for node in self.nodes if node.is_controller)

    @property
    def controller_addresses(self) -> tuple[HostPort, ...]:
        """Where a controller may be found: what the nodes name, then the controllers of the file themselves."""
        named = [address for node in self.nodes for address in node.controller_addresses]
        own = [
            HostPort(item.host, item.port)
            for node in self.controllers
            for item in node.controller_listeners[:1]
        ]
        return tuple(dict.fromkeys((*named, *own)))

    @property
    def brokers(self) -> tuple[NodeConfig, ...]:
        return tuple(node for node in self.nodes if node.is_broker)
