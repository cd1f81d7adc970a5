"""The broker of a node: its lifecycle, and the listeners for clients.

The order of the start is Kafka's: clients cannot connect before the controller has unfenced the broker once.
"""

import asyncio
import logging
import uuid
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from kquorum.broker.adapters.clean_shutdown import previous_broker_epoch
from kquorum.broker.adapters.delayed_operation import LoopDelayedOperation
from kquorum.broker.adapters.forwarding import ForwardedRanges, Forwarder
from kquorum.broker.adapters.lifecycle_runner import LifecycleRunner, ManagerRunner, RequestManager
from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.adapters.log_dirs import LogDirWatch
from kquorum.broker.adapters.topic_creation import AutoTopicCreation
from kquorum.broker.apis.fetch import kind_of_fetch
from kquorum.broker.apis.services import BrokerServices
from kquorum.broker.data_figures import DataFigures
from kquorum.broker.directory_manager import DirectoryManager
from kquorum.broker.group_figures import GroupFigures
from kquorum.broker.identity import BrokerIdentity, LifecycleConfig
from kquorum.broker.image_feed import ImageFeed, ImageObserver
from kquorum.broker.lifecycle import BrokerLifecycle
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.broker.quota.client_quotas import ClientQuotas
from kquorum.broker.quota.rate import Windows
from kquorum.broker.repeated_requests import RepeatedRequests
from kquorum.broker.transaction_figures import TransactionFigures
from kquorum.metadata.adapters.listener import server_features
from kquorum.metadata.adapters.request_bounds import RequestBounds
from kquorum.metadata.controller.topics.topic_configs import effective_topic_configs
from kquorum.metadata.delegation_tokens import HMAC_KEY_CONFIG
from kquorum.metadata.features import SUPPORTED_FEATURES, registration_features
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partitions import warm_columns
from kquorum.network.request_times import RequestTimes
from kquorum.network.server import KafkaServer
from kquorum.node.authorization import gate_of
from kquorum.node.config.model import NodeConfig
from kquorum.node.data import BrokerData
from kquorum.node.endpoints import advertised_brokers
from kquorum.node.errors import BrokerGaveUp, LogDirsFailed, NotRegistered
from kquorum.node.folders import NodeFolders
from kquorum.node.quorum_member import Fatal, QuorumMember
from kquorum.node.servers import advertised, kafka_servers
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.wire.message_schema import R
from kquorum.wire.messages.broker_registration import Feature, Listener
from kquorum.wire.messages.create_topics import CreatableTopicConfigs
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.warm_up import warm_up

log = logging.getLogger("node.broker")

# Kafka's brokers go on for 60 s. Its clients, and others, close their connection after 30 s, and would rather hear why.
FORWARDING_RETRY_TIMEOUT_MS = 25_000
CONTROLLER_APIS = (
    ApiKey.ENVELOPE,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
)


class BrokerRole:
    """What makes a node a broker, beside its replica of the log; `feed` brings the images."""

    def __init__(
        self,
        config: NodeConfig,
        folders: NodeFolders,
        clock: MonotonicWallClock,
        member: QuorumMember,
        feed: ImageFeed,
        fatal: Fatal,
    ) -> None:
        self._config = config
        self._folders = folders
        self._clock = clock
        self._member = member
        self._feed = feed
        self._fatal = fatal
        self._cache = feed.cache
        self.lifecycle = BrokerLifecycle(self._identity(), self._timing(), self._member.random_source)
        self.servers: list[KafkaServer] = []
        self.request_times = RequestTimes({ApiKey.FETCH: kind_of_fetch})
        self._runner: LifecycleRunner | None = None
        self._managers: list[ManagerRunner[Any]] = []
        self._listener: BrokerListener | None = None
        self._topic_creation: AutoTopicCreation | None = None
        self._data = BrokerData(
            config,
            folders,
            clock,
            member.random_source,
            lambda: self.lifecycle.broker_epoch,
            self._handle_failed_directory,
        )
        self._directories = DirectoryManager(
            config.node_id,
            folders.log_directory_ids,
            located=self._data.directory_of,
            on_assigned=self._data.moves.assigned,
        )
        self.quotas = ClientQuotas(
            lambda: self._cache.image.client_quotas,
            Windows(config.quota_window_num, config.quota_window_size_seconds * 1_000),
        )
        directories = zip(config.log_dirs, folders.log_directory_ids, strict=True)
        self._log_dirs = LogDirWatch(
            # A node cannot go on without its metadata log, and says so itself.
            {folder: each for folder, each in directories if folder != config.metadata_log_dir}
        )

    @property
    def applied_offset(self) -> int:
        """The last in the image that is served; -1 before any."""
        return self._feed.applied_offset

    @property
    def offline_log_dirs(self) -> int:
        """How many directories have failed."""
        return len(self._log_dirs.offline)

    def group_figures(self) -> GroupFigures:
        return self._data.groups.figures()

    def transaction_figures(self) -> TransactionFigures:
        return self._data.transactions.figures()

    def data_figures(self) -> DataFigures:
        return self._data.figures()

    def throttled_replication(self, now_ms: int) -> Mapping[str, float]:
        """Bytes/s of each throttle, by Kafka's word for it."""
        throttles = self._data.throttles
        return {
            "leaderreplication": throttles.leader.per_second(now_ms),
            "followerreplication": throttles.follower.per_second(now_ms),
            "alterlogdirsreplication": throttles.moves.per_second(now_ms),
        }

    async def start(self) -> None:
        """After `attach`; returns once the broker serves clients. Raises CannotListen, or NotRegistered when no
        controller takes it."""
        runner = self._runner
        assert runner is not None, "a broker that does not see the images cannot start"
        assert self._listener is not None, "it is made with the runner"
        runner.start()
        await self._reach(runner, BrokerState.RECOVERY)
        await self._data.start()
        runner.set_ready_to_unfence()
        await self._reach(runner, BrokerState.RUNNING)
        await self._listen(self._listener)
        self._log_dirs.start(self._tell_offline)

    async def stop(self) -> None:
        """Controlled shutdown first: leaders move away while clients are still served. It needs a controller, so a
        node of both roles stops its broker before its controller."""
        if self._runner is not None:
            await self._leave(self._runner)
        if self._listener is not None:
            # A server waits for answers under way; those that wait for data would come too late.
            self._listener.end_waits()
        for server in reversed(self.servers):
            await server.stop()
        if self._listener is not None:
            await self._listener.stop()
        if self._topic_creation is not None:
            await self._topic_creation.stop()
        await self._data.stop(self.lifecycle.broker_epoch)
        self._log_dirs.close()
        for manager in self._managers:
            manager.close()
        if self._runner is not None:
            self._runner.close()

    def attach(self) -> None:
        """Call this before the first image is published."""
        heartbeats = self._member.channel(
            "heartbeat", retry_timeout_ms=self._timing().request_retry_timeout_ms
        )
        self._runner = LifecycleRunner(
            self.lifecycle,
            heartbeats,
            self._clock.now_ms,
            lambda: self._feed.applied_offset,
            self._config.broker_session_timeout_ms,
            lambda reason: self._fatal(BrokerGaveUp(self._config.node_id, reason)),
        )
        # After its channel, which goes to the new controller then.
        self._member.leader_observers.append(self._runner.handle_leader_change)
        data = self._data
        data.poke_alter_partition = self._run("alter-partition", data.replicas.alter_partitions).poke
        data.producer_ids.poke = self._run("producer-ids", data.producer_ids).poke
        where = self._directories
        where.poke = self._run("directory-assignments", where, where.handle_image).poke
        data.assign_directory = where.assign
        # Last: what the other managers are to ask for comes from it.
        self._feed.observers.append(data.observe)
        self._listener = self._new_listener()
        # Now, for it takes a while: a voter in the same process must not be held up once it votes.
        warm_up((*self._listener.supported, *CONTROLLER_APIS))
        warm_columns()

    def _run(
        self, purpose: str, manager: RequestManager[R], handle_image: ImageObserver | None = None
    ) -> ManagerRunner[R]:
        """The manager has a channel to the controller for itself, and sees all images if it handles them."""
        channel = self._member.channel(purpose, retry_timeout_ms=self._config.request_timeout_ms)
        runner = ManagerRunner(manager, channel, self._clock.now_ms, lambda: self.lifecycle.broker_epoch)

        def observe(now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
            if handle_image is not None:
                handle_image(now_ms, delta, image)
            # Without a broker epoch nothing was sent; the registration changes the image.
            runner.poke()

        self._feed.observers.append(observe)
        self._managers.append(runner)
        return runner

    def _handle_failed_directory(self, directory_id: UUID) -> None:
        """An append or a read failed there, which is noticed before the next look at the directories."""
        self._end_without_log_dirs({*self._log_dirs.offline, directory_id})
        self._log_dirs.set_offline(directory_id)

    def _end_without_log_dirs(self, failed: Collection[UUID]) -> None:
        """As in Kafka: the process ends at once, when its last log directory has failed or that of its metadata."""
        paths = dict(zip(self._folders.log_directory_ids, self._config.log_dirs, strict=True))
        if all(each in failed for each in paths):
            names = ", ".join(map(str, paths.values()))
            self._fatal(LogDirsFailed(f"all log directories have failed ({names})"))
        elif any(paths[each] == self._config.metadata_log_dir for each in failed):
            self._fatal(
                LogDirsFailed(f"the metadata log directory {self._config.metadata_log_dir} has failed")
            )

    def _tell_offline(self, log_dirs: tuple[UUID, ...]) -> None:
        """Reports a failed directory to the controller before any replica could be placed there."""
        assert self._runner is not None, "it started"
        self._end_without_log_dirs(log_dirs)
        self._directories.set_offline(log_dirs)
        for directory_id in log_dirs:
            self._data.directory_failed(directory_id)
        self._runner.set_offline_log_dirs(log_dirs)

    async def _reach(self, runner: LifecycleRunner, state: BrokerState) -> None:
        """Raises NotRegistered when the lifecycle ends instead."""
        reached = await runner.wait_for(state, BrokerState.RUNNING, BrokerState.SHUTTING_DOWN)
        if reached is BrokerState.SHUTTING_DOWN:
            raise NotRegistered(self._config.node_id, self.lifecycle.failure or "it was told to shut down")

    def _new_listener(self) -> BrokerListener:
        forwarding = self._member.channel(
            "forwarding",
            retry_timeout_ms=FORWARDING_RETRY_TIMEOUT_MS,
            request_timeout_ms=self._config.request_timeout_ms,
        )
        repeated = RepeatedRequests(
            self._topic_configs, token_secret_key=self._config.as_kafka_keys().get(HMAC_KEY_CONFIG) or None
        )
        self._feed.observers.append(repeated.observe)
        forwarder = Forwarder(forwarding, repeated)
        creation = self._topic_creation = AutoTopicCreation(forwarder)
        data = self._data
        loop = asyncio.get_running_loop()

        def create_internal_topic(name: str) -> None:
            """Also from the thread of long answers."""
            loop.call_soon_threadsafe(lambda: creation.create_internal(name, data.node_configs()))

        services = BrokerServices(
            cache=self._cache,
            forwarder=forwarder,
            cluster_id=self._member.cluster_id,
            random_source=self._member.random_source,
            new_delayed_operation=LoopDelayedOperation,
            topic_creation=creation if self._config.auto_create_topics_enable else None,
            create_internal_topic=create_internal_topic,
            node_id=self._config.node_id,
            node_configs=self._config.as_kafka_keys(),
            log_dirs=self._folders.log_directory_paths,
            data=data.plane,
            groups=data.groups,
            transactions=data.transactions,
            quotas=self.quotas,
            authorizer=gate_of(self._config, self._clock.now_ms),
        )
        return BrokerListener(services, bounds=RequestBounds(self._config.kquorum_request_max_entries))

    def _topic_configs(self, image: MetadataImage, topic_name: str) -> tuple[CreatableTopicConfigs, ...]:
        return effective_topic_configs(image, topic_name, self._config.node_id, self._config.as_kafka_keys())

    async def _listen(self, listener: BrokerListener) -> None:
        servers = kafka_servers(
            self._config,
            self._config.broker_listeners,
            listener.handle,
            listener.supported,
            lambda: server_features(self._cache.image, SUPPORTED_FEATURES, self._member.driver.kraft_version),
            image=lambda: self._cache.image,
            now_ms=self._clock.now_ms,
            answered_elsewhere=ForwardedRanges(lambda: self._member.controller_versions),
            times=self.request_times,
        )
        for server in servers:
            await server.start()
            self.servers.append(server)

    async def _leave(self, runner: LifecycleRunner) -> None:
        """The wait is bounded by the session timeout: a leader whose partition no other broker can lead would wait for
        good, and its records are on its disk either way."""
        if not self._config.controlled_shutdown_enable or self.lifecycle.state is not BrokerState.RUNNING:
            runner.begin_shutdown()
            return
        self._data.begin_controlled_shutdown()
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
            listeners=advertised(self._config, advertised_brokers(self._config), Listener),
            features=registration_features(Feature),
            rack=self._config.broker_rack,
            log_dirs=self._folders.log_directory_ids,
            previous_broker_epoch=previous_broker_epoch(self._config.log_dirs),
        )

    def _timing(self) -> LifecycleConfig:
        return LifecycleConfig(
            heartbeat_interval_ms=self._config.broker_heartbeat_interval_ms,
            session_timeout_ms=self._config.broker_session_timeout_ms,
            initial_registration_timeout_ms=self._config.initial_broker_registration_timeout_ms,
            log_dir_failure_timeout_ms=self._config.log_dir_failure_timeout_ms,
        )
