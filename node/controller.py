"""The controller of a node: the state machine of its log, the listeners for quorum and brokers, its registration."""

import asyncio
import logging
import uuid

from kquorum.metadata.adapters.controller_registration import ControllerRegistrar
from kquorum.metadata.adapters.listener import ControllerListener, controller_listener_apis, server_features
from kquorum.metadata.adapters.request_bounds import RequestBounds
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.features import SUPPORTED_FEATURES, registration_features
from kquorum.metadata.image.partitions import warm_columns
from kquorum.network.request_times import RequestTimes
from kquorum.network.server import KafkaServer
from kquorum.node.authorization import LoadWatch, gate_of
from kquorum.node.broker_watch import BrokerWatch
from kquorum.node.config.model import NodeConfig
from kquorum.node.endpoints import advertised_controllers
from kquorum.node.folders import NodeFolders
from kquorum.node.quorum_member import QuorumMember
from kquorum.node.servers import advertised, kafka_servers
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.wire.messages.controller_registration import Feature, Listener
from kquorum.wire.protocol.warm_up import warm_up

log = logging.getLogger("node.controller")


class ControllerRole:
    """What makes a node a controller, beside its replica of the log; `controller` is the log's state machine."""

    def __init__(
        self, config: NodeConfig, folders: NodeFolders, clock: MonotonicWallClock, member: QuorumMember
    ) -> None:
        self._config = config
        self._clock = clock
        self._member = member
        self.controller = Controller(
            controller_config(config, folders),
            member.driver,
            member.random_source,
            member.cluster_id,
            on_fault=self._handle_fault,
        )
        self.fault_count = 0
        self._listener: ControllerListener | None = None
        self.servers: list[KafkaServer] = []
        self.request_times = RequestTimes()
        self._registrar = self._new_registrar()
        self._registration: asyncio.Task[None] | None = None
        self.controller.publishers.append(lambda image, _: self._registrar.handle_image(image))

        watch = BrokerWatch(lambda: member.driver.leader_id == config.node_id)
        self.controller.publishers.append(lambda _, delta: watch.handle_delta(delta))
        self.controller.session_end_observers.append(watch.handle_silence)

    def attach(self) -> None:
        """Before the replica begins: it takes a while, in which the replica could not vote."""
        warm_up(controller_listener_apis())
        warm_columns()

    def register(self) -> None:
        """Have the active controller write down where this one is; goes on by itself."""
        self._registration = asyncio.get_running_loop().create_task(self._registrar.run())

    async def listen(self) -> None:
        """Raises CannotListen; what was started is stopped by `stop` then too."""
        controller = self.controller
        listener = self._listener = ControllerListener(
            controller=controller,
            handle_raft=self._member.handle_raft,
            now_ms=self._clock.now_ms,
            wake=self._member.driver.wake,
            image=lambda: controller.committed_image,
            node_id=self._config.node_id,
            node_configs=self._config.as_kafka_keys(),
            gate=gate_of(self._config, self._clock.now_ms, self._load_watch()),
            topics=lambda: controller.image.topics,
            bounds=RequestBounds(self._config.kquorum_request_max_entries),
        )
        servers = kafka_servers(
            self._config,
            self._config.controller_listeners,
            listener.handle,
            listener.supported,
            lambda: server_features(
                controller.committed_image, SUPPORTED_FEATURES, self._member.driver.kraft_version
            ),
            image=lambda: controller.committed_image,
            now_ms=self._clock.now_ms,
            admission=listener.admit,
            times=self.request_times,
        )
        for server in servers:
            await server.start()
            self.servers.append(server)

    def _load_watch(self) -> LoadWatch:
        return LoadWatch(
            has_heard=lambda: self._member.ms_since_commit() is not None,
            high_watermark=lambda: self._member.driver.high_watermark,
            applied_offset=lambda: self.controller.committed_image.provenance.last_contained_offset,
        )

    def _new_registrar(self) -> ControllerRegistrar:
        return ControllerRegistrar(
            node_id=self._config.node_id,
            incarnation_id=uuid.uuid4(),
            listeners=advertised(self._config, advertised_controllers(self._config), Listener),
            features=registration_features(Feature),
            channel=self._member.channel(
                "controller-registration", retry_timeout_ms=self._config.request_timeout_ms
            ),
            image=lambda: self.controller.committed_image,
        )

    def end_registration(self) -> None:
        if self._registration is not None:
            self._registration.cancel()

    async def stop(self) -> None:
        """After the replica has left the quorum: a leader hands over while votes and fetches are answered here."""
        for server in reversed(self.servers):
            await server.stop()
        if self._listener is not None:
            self._listener.stop()

    def _handle_fault(self, what: str, error: Exception) -> None:
        self.fault_count += 1
        log.error("%s, which is a fault of this program; this node gives up leading", what, exc_info=error)


def controller_config(config: NodeConfig, folders: NodeFolders) -> ControllerConfig:
    return ControllerConfig(
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        metadata_max_idle_interval_ms=config.metadata_max_idle_interval_ms,
        delete_topic_enable=config.delete_topic_enable,
        min_insync_replicas=config.min_insync_replicas,
        unclean_leader_election_enable=config.unclean_leader_election_enable,
        unclean_leader_election_interval_ms=config.unclean_leader_election_interval_ms,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_seconds=config.leader_imbalance_check_interval_seconds,
        delegation_token_secret_key=config.delegation_token_secret_key,
        delegation_token_max_lifetime_ms=config.delegation_token_max_lifetime_ms,
        delegation_token_expiry_time_ms=config.delegation_token_expiry_time_ms,
        delegation_token_expiry_check_interval_ms=config.delegation_token_expiry_check_interval_ms,
        delegation_token_max_per_owner=config.kquorum_delegation_token_max_per_owner,
        controller_quota_window_ms=1000
        * config.controller_quota_window_num
        * config.controller_quota_window_size_seconds,
        node_configs=config.as_kafka_keys(),
        bootstrap_records=folders.bootstrap_records(),
    )
