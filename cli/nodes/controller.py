"""A controller process: replica, controller, listener, and the registration of itself."""

import asyncio
import logging
import uuid

from cli.config.model import NodeConfig
from cli.nodes.broker_watch import BrokerWatch
from cli.nodes.endpoints import advertised_controllers
from cli.nodes.folders import NodeFolders
from cli.nodes.inspect_source import NodeInspectSource
from cli.nodes.quorum_member import Fatal, QuorumMember
from cli.nodes.quorum_source import NodeQuorumSource
from cli.nodes.servers import StoppableServer, advertised, kafka_servers, start_grpc
from metadata.adapters.controller_registration import ControllerRegistrar
from metadata.adapters.listener import ControllerListener, server_features
from metadata.controller.config import ControllerConfig
from metadata.controller.controller import Controller
from metadata.features import SUPPORTED_FEATURES, registration_features
from metadata.image.delta import MetadataDelta
from metadata.image.image import MetadataImage
from raft.adapters.clock import MonotonicWallClock
from wire.protocol.warm_up import warm_up

log = logging.getLogger("cli.controller")


class ControllerNode:
    def __init__(
        self, config: NodeConfig, folders: NodeFolders, clock: MonotonicWallClock, fatal: Fatal
    ) -> None:
        self._config = config
        self._folders = folders
        self._clock = clock
        self._member = QuorumMember(config, folders, clock, fatal)
        self._servers: list[StoppableServer] = []
        self._registration: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises CannotListen; what was started is stopped by `stop` then too."""
        member = self._member
        controller = Controller(
            controller_config(self._config, self._folders),
            member.driver,
            member.dice,
            member.cluster_id,
            on_fault=_log_fault,
        )
        registrar = self._registrar(controller)
        source = NodeInspectSource(
            member, lambda: controller.committed_image, local_image=lambda: controller.image
        )

        watch = BrokerWatch(lambda: member.driver.leader_id == self._config.node_id)

        def publish(image: MetadataImage, delta: MetadataDelta) -> None:
            watch.handle_delta(delta)
            registrar.handle_image(image)
            member.snapshots.publish(delta, image)
            member.states.handle_own(image.provenance.last_contained_offset, controller.state_hash)
            source.publish(delta, image)

        controller.publishers.append(publish)
        member.start(controller)
        await self._listen(controller)
        grpc_server = await start_grpc(self._config, source, NodeQuorumSource(member))
        if grpc_server is not None:
            self._servers.append(grpc_server)
        self._registration = asyncio.get_running_loop().create_task(registrar.run())

    async def _listen(self, controller: Controller) -> None:
        listener = ControllerListener(
            controller=controller,
            handle_raft=self._member.handle_raft,
            now_ms=self._clock.now_ms,
            wake=self._member.driver.wake,
            image=lambda: controller.committed_image,
            node_id=self._config.node_id,
            node_configs=self._config.as_kafka_keys(),
        )
        warm_up(listener.supported)
        servers = kafka_servers(
            self._config,
            self._config.controller_listeners,
            listener.handle,
            listener.supported,
            lambda: server_features(
                controller.committed_image, SUPPORTED_FEATURES, self._member.driver.kraft_version
            ),
        )
        for server in servers:
            await server.start()
            self._servers.append(server)

    def _registrar(self, controller: Controller) -> ControllerRegistrar:
        return ControllerRegistrar(
            node_id=self._config.node_id,
            incarnation_id=uuid.uuid4(),
            listeners=advertised(advertised_controllers(self._config)),
            features=registration_features(),
            channel=self._member.channel(
                "controller-registration", retry_timeout_ms=self._config.request_timeout_ms
            ),
            image=lambda: controller.committed_image,
        )

    async def stop(self) -> None:
        """A leader hands over first; votes and fetches are answered meanwhile."""
        if self._registration is not None:
            self._registration.cancel()
        await self._member.leave()
        for server in reversed(self._servers):
            await server.stop()
        self._member.close()


def _log_fault(what: str, error: Exception) -> None:
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
        controller_quota_window_ms=1000
        * config.controller_quota_window_num
        * config.controller_quota_window_size_seconds,
        node_configs=config.as_kafka_keys(),
        bootstrap_records=folders.bootstrap_records(),
    )
