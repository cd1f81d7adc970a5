"""A broker process: an observer of the metadata log, its lifecycle, and the listener for clients.

The order of the start is Kafka's: clients cannot connect before the controller has unfenced the broker once.
"""

import asyncio
import logging
import uuid

from broker.adapters.clean_shutdown import (
    forget_clean_shutdown,
    mark_clean_shutdown,
    previous_broker_epoch,
)
from broker.adapters.forwarding import Forwarder
from broker.adapters.lifecycle_runner import IsrRunner, LifecycleRunner
from broker.adapters.listener import BrokerListener
from broker.isr_manager import IsrManager
from broker.lifecycle import BrokerIdentity, BrokerLifecycle, LifecycleConfig
from broker.lifecycle_states import BrokerState
from broker.metadata_cache import MetadataCache
from broker.state_machine import BrokerStateMachine
from cli.config.model import NodeConfig
from cli.nodes.errors import NotRegistered
from cli.nodes.folders import NodeFolders
from cli.nodes.inspect_source import NodeInspectSource
from cli.nodes.quorum_member import Fatal, QuorumMember
from cli.nodes.quorum_source import NodeQuorumSource
from cli.nodes.servers import (
    StoppableServer,
    advertised,
    check_addresses_are_free,
    kafka_servers,
    start_grpc,
)
from metadata.adapters.listener import server_features
from metadata.features import SUPPORTED_FEATURES, registration_features
from metadata.image.delta import MetadataDelta
from metadata.image.image import MetadataImage
from raft.adapters.clock import MonotonicWallClock
from wire.protocol.api_keys import ApiKey
from wire.protocol.warm_up import warm_up

log = logging.getLogger("cli.broker")

FORWARDING_RETRY_TIMEOUT_MS = 60_000
CONTROLLER_APIS = (
    ApiKey.ENVELOPE,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALTER_PARTITION,
)


class BrokerNode:
    def __init__(
        self, config: NodeConfig, folders: NodeFolders, clock: MonotonicWallClock, fatal: Fatal
    ) -> None:
        self._config = config
        self._folders = folders
        self._clock = clock
        self._member = QuorumMember(config, folders, clock, fatal)
        self._cache = MetadataCache()
        self._machine = BrokerStateMachine(self._cache)
        self._lifecycle = BrokerLifecycle(self._identity(), self._timing(), self._member.dice)
        self._servers: list[StoppableServer] = []
        self._runner: LifecycleRunner | None = None
        self._isr_runner: IsrRunner | None = None
        self._listener: BrokerListener | None = None

    async def start(self) -> None:
        """Returns once the broker serves clients. Raises CannotListen, or NotRegistered when no controller takes it."""
        check_addresses_are_free(self._config.broker_listeners)
        source = NodeInspectSource(self._member, lambda: self._cache.image)
        self._machine.observers.append(lambda _now_ms, delta, image: source.publish(delta, image))
        self._machine.observers.append(
            lambda _now_ms, delta, image: self._member.snapshots.publish(delta, image)
        )
        self._machine.observers.append(
            lambda _now_ms, _delta, image: self._member.states.handle_own(
                image.provenance.last_contained_offset, self._machine.state_hash
            )
        )
        self._machine.fault_observers.append(self._member.snapshots.disable)
        runner = self._start_running()
        self._member.start(self._machine)
        grpc_server = await start_grpc(self._config, source, NodeQuorumSource(self._member))
        if grpc_server is not None:
            self._servers.append(grpc_server)
        runner.start()
        await self._reach(runner, BrokerState.RECOVERY)
        forget_clean_shutdown(self._config.log_dirs)
        runner.set_ready_to_unfence()
        await self._reach(runner, BrokerState.RUNNING)
        await self._listen()

    async def stop(self) -> None:
        """Controlled shutdown first: leaders move away while clients are still served."""
        if self._runner is not None:
            await self._leave(self._runner)
        for server in reversed(self._servers):
            await server.stop()
        if self._listener is not None:
            await self._listener.stop()
        if self._isr_runner is not None:
            self._isr_runner.close()
        if self._runner is not None:
            self._runner.close()
        await self._member.leave()
        self._member.close()
        if self._lifecycle.is_registered:
            mark_clean_shutdown(self._config.log_dirs, self._lifecycle.broker_epoch)

    def _start_running(self) -> LifecycleRunner:
        heartbeats = self._member.channel(
            "heartbeat", retry_timeout_ms=self._timing().request_retry_timeout_ms
        )
        alterations = self._member.channel(
            "alter-partition", retry_timeout_ms=self._config.request_timeout_ms
        )
        runner = LifecycleRunner(
            self._lifecycle,
            heartbeats,
            self._clock.now_ms,
            lambda: self._machine.applied_offset,
            self._config.broker_session_timeout_ms,
        )
        manager = IsrManager(self._config.node_id)
        isr_runner = IsrRunner(manager, alterations, self._clock.now_ms, lambda: self._lifecycle.broker_epoch)

        def observe(now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
            manager.handle_image(now_ms, delta, image)
            isr_runner.poke()

        self._machine.observers.append(observe)
        self._runner, self._isr_runner = runner, isr_runner
        return runner

    async def _reach(self, runner: LifecycleRunner, state: BrokerState) -> None:
        """Raises NotRegistered when the lifecycle ends instead."""
        reached = await runner.wait_for(state, BrokerState.RUNNING, BrokerState.SHUTTING_DOWN)
        if reached is BrokerState.SHUTTING_DOWN:
            raise NotRegistered(self._config.node_id, self._lifecycle.failure or "it was told to shut down")

    async def _listen(self) -> None:
        forwarding = self._member.channel(
            "forwarding",
            retry_timeout_ms=FORWARDING_RETRY_TIMEOUT_MS,
            request_timeout_ms=self._config.request_timeout_ms,
        )
        listener = BrokerListener(
            cache=self._cache,
            forwarder=Forwarder(forwarding),
            cluster_id=self._member.cluster_id,
            dice=self._member.dice,
            auto_create_topics=self._config.auto_create_topics_enable,
            node_id=self._config.node_id,
            node_configs=self._config.as_kafka_keys(),
            log_dirs=self._folders.log_directory_paths,
        )
        self._listener = listener
        warm_up((*listener.supported, *CONTROLLER_APIS))
        servers = kafka_servers(
            self._config,
            self._config.broker_listeners,
            listener.handle,
            listener.supported,
            lambda: server_features(self._cache.image, SUPPORTED_FEATURES, self._member.driver.kraft_version),
        )
        for server in servers:
            await server.start()
            self._servers.append(server)

    async def _leave(self, runner: LifecycleRunner) -> None:
        """The wait is bounded by the session timeout: a leader whose partition nobody else can lead would wait for
        good, and as these brokers hold no data, nothing is saved by waiting longer."""
        if not self._config.controlled_shutdown_enable or self._lifecycle.state is not BrokerState.RUNNING:
            runner.begin_shutdown()
            return
        runner.begin_controlled_shutdown()
        timeout_ms = self._config.broker_session_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await runner.wait_for(BrokerState.SHUTTING_DOWN)
        except TimeoutError:
            log.warning(
                "the controller did not let this broker go within %d ms; leaving all the same", timeout_ms
            )
            runner.begin_shutdown()

    def _identity(self) -> BrokerIdentity:
        return BrokerIdentity(
            broker_id=self._config.node_id,
            cluster_id=self._member.cluster_id,
            incarnation_id=uuid.uuid4(),
            listeners=advertised(self._config.advertised_listeners),
            features=registration_features(),
            rack=self._config.broker_rack,
            log_dirs=self._folders.log_directory_ids,
            previous_broker_epoch=previous_broker_epoch(self._config.log_dirs),
        )

    def _timing(self) -> LifecycleConfig:
        return LifecycleConfig(
            heartbeat_interval_ms=self._config.broker_heartbeat_interval_ms,
            session_timeout_ms=self._config.broker_session_timeout_ms,
            initial_registration_timeout_ms=self._config.initial_broker_registration_timeout_ms,
        )
