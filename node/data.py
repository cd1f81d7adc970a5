"""The data plane of a broker: its logs, the replicas on them, what clients and followers ask of them, and the fetchers
from other brokers."""

import asyncio
import logging
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from uuid import UUID

from kquorum.broker.adapters.data_plane import DataPlaneRunner
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import CleanerSettings, LogManager, ManagerIntervals
from kquorum.broker.adapters.log.log_space import LogSpace
from kquorum.broker.adapters.peer_senders import PeerSenders
from kquorum.broker.adapters.replica_fetchers import FetchConnections, ReplicaFetchers
from kquorum.broker.apis.write_txn_markers import write_markers
from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kquorum.broker.data_figures import DataFigures
from kquorum.broker.data_plane import DataPlane, DirectoryUsage, FutureLog
from kquorum.broker.fetch.replica_selection import RACK_AWARE_SELECTOR
from kquorum.broker.fetch.sessions import FetchSessions
from kquorum.broker.fetch.waits import Waits
from kquorum.broker.groups.coordinator import GroupCoordinator
from kquorum.broker.groups.settings import ConsumerGroupConfigs, GroupSettings, MigrationPolicy
from kquorum.broker.internal_topics import creatable_topic
from kquorum.broker.log.log_config import log_config
from kquorum.broker.log.partition_log import PartitionLog
from kquorum.broker.log.producer_state import ProducerSettings
from kquorum.broker.producer_ids import ProducerIds
from kquorum.broker.quota.rate import Windows
from kquorum.broker.quota.replication import ReplicationThrottles
from kquorum.broker.replica.fetcher import FetcherSettings
from kquorum.broker.replica.full_disk import FullDisk
from kquorum.broker.replica.log_moves import LogMoves
from kquorum.broker.replica.partition import Partition, TopicPartition
from kquorum.broker.replica.replica_manager import ReplicaManager, ReplicaSettings, is_stray
from kquorum.broker.transactions.coordinator import TransactionCoordinator
from kquorum.broker.transactions.peers import PeerQueue
from kquorum.broker.transactions.settings import TransactionSettings
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.metadata.configs.table import TOPIC_CONFIGS
from kquorum.metadata.controller.topics.topic_configs import effective_topic_configs
from kquorum.metadata.image.cluster import Endpoint
from kquorum.metadata.image.configs import TOPIC, ConfigResource, ConfigsImage
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import DIRECTORIES
from kquorum.network.turns import Work, turns_of
from kquorum.node.broker_logs import BrokerLogs, CleanerPace
from kquorum.node.config.model import NodeConfig
from kquorum.node.endpoints import inter_broker_listener
from kquorum.node.folders import NodeFolders
from kquorum.node.network_limits import segments_open
from kquorum.node.security import cannot_log_in, inter_broker_client
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.raft.ports import RandomSource
from kquorum.storage.open_segments import OpenSegments
from kquorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

log = logging.getLogger("node.broker")

_MIN_INSYNC = "min.insync.replicas"


class BrokerData:
    """Made on the loop. Until `start` all partitions are other brokers'; the images before it are history."""

    def __init__(
        self,
        config: NodeConfig,
        folders: NodeFolders,
        clock: MonotonicWallClock,
        random_source: RandomSource,
        broker_epoch: Callable[[], int],
        on_failed_directory: Callable[[UUID], None],
    ) -> None:
        self._config = config
        self._clock = clock
        self._image = MetadataImage.empty()
        self._has_started = False
        # Of the topics without their own, with the configs by which it was found.
        self._min_insync_default: tuple[ConfigsImage, int] | None = None
        self._failed: set[UUID] = set()
        self._paths = dict(zip(folders.log_directory_ids, config.log_dirs, strict=True))
        self._on_failed_directory = on_failed_directory
        self._cleaner_pace = CleanerPace(config.log_cleaner_io_max_bytes_per_second)
        self.logs = BrokerLogs(
            self._new_log_manager(random_source),
            clock.now_ms,
            cleaner_backoff_ms=config.log_cleaner_backoff_ms if config.log_cleaner_enable else None,
        )
        self.throttles = _throttles(config)
        self.assign_directory: Callable[[UUID, int, UUID], None] = lambda _topic, _partition, _directory: None
        self.moves = self._new_moves()
        self._full_disk = FullDisk(config.node_id, self._assign_directory)
        self.replicas = self._new_replicas()
        self.logs.on_made = self._handle_made
        self.producer_ids = ProducerIds(config.node_id)
        self.groups = self._new_groups(random_source)
        self.transactions = self._new_transactions()
        waits = Waits()
        self._runner = DataPlaneRunner(
            self.replicas,
            waits,
            clock.now_ms,
            self._ask_controller,
            [self.groups, self.transactions],
            self.moves,
            self._take_turn,
            on_tick=self._sync_fetchers,
        )
        self.plane = self._new_plane(waits, random_source)
        self._fetchers = self._new_fetchers(broker_epoch)
        self._senders = [self._new_senders(*each) for each in self._peer_queues()]
        self.poke_alter_partition: Callable[[], None] = lambda: None

    # HostedPartitions, for the handlers

    def online(self, topic_partition: TopicPartition) -> Partition | None:
        return self.replicas.online(topic_partition)

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return self.replicas.is_offline(topic_partition)

    def all_online(self) -> Iterable[Partition]:
        return self.replicas.all_online()

    def _is_hosted(self, topic_partition: TopicPartition) -> bool:
        return self.online(topic_partition) is not None or self.is_offline(topic_partition)

    def _assign_directory(self, topic_id: UUID, index: int, directory_id: UUID) -> None:
        self.assign_directory(topic_id, index, directory_id)

    def directory_of(self, topic_id: UUID, index: int) -> UUID | None:
        """Of the log of a partition that is open here, and whose replica does not wait for space."""
        if self._full_disk.is_away(topic_id, index):
            return None
        topic = self._image.topics.by_id.get(topic_id)
        found = None if topic is None else self.online(TopicPartition(topic.name, index))
        return None if found is None or found.topic_id != topic_id else found.log.directory_id

    def directories(self) -> Mapping[UUID, DirectoryUsage]:
        futures: dict[UUID, list[FutureLog]] = {}
        for move in self.moves.moves.values():
            futures.setdefault(move.future.directory_id, []).append(FutureLog(move.future, move.lag))
        logs: dict[UUID, list[PartitionLog]] = {}
        for partition in self.replicas.all_online():
            logs.setdefault(partition.log.directory_id, []).append(partition.log)
        return {
            directory_id: _usage(
                path,
                tuple(logs.get(directory_id, ())),
                tuple(futures.get(directory_id, ())),
                directory_id in self._failed,
            )
            for directory_id, path in self._paths.items()
        }

    def figures(self) -> DataFigures:
        plane, replicas = self.plane, self.replicas
        topics, total = plane.traffic.by_topic(self._image.topics.by_name.keys())
        return DataFigures(
            total=total,
            topics=topics,
            replication_bytes_in=replicas.received_bytes,
            replication_bytes_out=plane.traffic.replication_bytes_out,
            waiting=plane.waits.waiting,
            expired=plane.waits.expired,
            max_lag=replicas.max_lag,
            failed_partitions=replicas.failed_partitions,
            offline_replicas=replicas.offline_replicas,
            under_min_isr=sum(each.is_under_min_isr for each in replicas.all_online()),
            fetch_sessions=len(plane.sessions),
            session_partitions=plane.sessions.cached_partitions,
            session_evictions=plane.sessions.evictions,
            full_log_dirs=sum(each.space.is_full for each in self.logs.manager.live_dirs),
        )

    # From start to stop

    def observe(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        if self._has_started:
            self._change_configs(delta)
            self.replicas.handle_image(now_ms, delta, image)
            self.groups.handle_image(now_ms, delta, image)
            self.transactions.handle_image(delta, image)
            self._settle()

    async def start(self) -> None:
        """Load the logs, and lead and follow as the newest image has it. It is as new as the cluster's when the broker
        was registered: see `ReplicaManager.begin`. Raises FolderNotOfLog and PartitionFoundTwice."""
        image = self._image

        def is_stray_log(topic: str, partition: int, topic_id: UUID | None) -> bool:
            return is_stray(image, self._config.node_id, TopicPartition(topic, partition), topic_id)

        trouble = cannot_log_in(self._config)
        if trouble is not None:
            log.warning("%s", trouble)
        await self.logs.load(is_stray_log)
        self._has_started = True
        if self._image.configs is not image.configs:
            # They changed while the logs were loaded, and what was loaded before obeys the older ones.
            self.logs.change_configs({topic for topic, _ in self.logs.manager.logs})
        self.throttles.begin(self._image, self.node_configs())
        self.replicas.begin(self._clock.now_ms(), self._image)
        self.moves.drop_unowned(
            [TopicPartition(*each) for each in self.logs.manager.futures], self._is_hosted
        )
        self.groups.begin(self._image)
        self.transactions.begin(self._image)
        self._runner.start()
        self._settle()

    def begin_controlled_shutdown(self) -> None:
        self.replicas.begin_controlled_shutdown()

    async def stop(self, broker_epoch: int) -> None:
        """After the listeners, when nothing is appended any more. Each directory whose logs were all closed in order
        gets the mark of that, with the broker's epoch."""
        await self._fetchers.close()
        for sender in self._senders:
            await sender.close()
        self._runner.close()
        while self.replicas.delete_some():  # noqa: ASYNC110 - nothing is waited for: others have their turn
            await asyncio.sleep(0)
        self._cleaner_pace.stop()
        await self.logs.close(broker_epoch)

    def directory_failed(self, directory_id: UUID) -> None:
        self._failed.add(directory_id)
        self.moves.directory_failed(directory_id)
        self.replicas.directory_failed(directory_id)
        self._settle()

    def _handle_space(self, directory_ids: Collection[UUID], is_full: bool) -> None:
        """On the loop."""
        if not is_full:
            for directory_id in directory_ids:
                self.replicas.has_space(directory_id)
            self._settle()

    # Parts

    def _new_log_dirs(self, now_ms: int) -> list[LogDir]:
        """Those on one file system share what is reserved of its space."""
        loop = asyncio.get_running_loop()
        reserved_bytes = self._config.kquorum_reserved_space_bytes

        def tell(ids: list[UUID], is_full: bool) -> None:
            """From any thread."""
            loop.call_soon_threadsafe(self._handle_space, ids, is_full)

        open_segments = OpenSegments(segments_open())
        spaces: dict[object, tuple[LogSpace, list[UUID]]] = {}
        found = []
        for directory_id, path in self._paths.items():
            try:
                device: object = path.stat().st_dev
            except OSError:
                device = path
            if device not in spaces:
                spaces[device] = (LogSpace(path, reserved_bytes), [])
            space, ids = spaces[device]
            ids.append(directory_id)
            found.append(LogDir(path, directory_id, now_ms=now_ms, space=space, open_segments=open_segments))
        for space, ids in spaces.values():
            space.on_change = partial(tell, ids)
        return found

    def _new_log_manager(self, random_source: RandomSource) -> LogManager:
        config, now_ms = self._config, self._clock.now_ms()
        loop = asyncio.get_running_loop()

        def handle_offline(log_dir: LogDir, _lost: Sequence[tuple[str, int]]) -> None:
            """Logs are loaded in a thread; and no partition is to change inside its own append."""
            loop.call_soon_threadsafe(self._on_failed_directory, log_dir.directory_id)

        return LogManager(
            self._new_log_dirs(now_ms),
            config_of=lambda topic: log_config(self.log_values(topic)),
            intervals=ManagerIntervals(
                retention_check_ms=config.log_retention_check_interval_ms,
                flush_recovery_point_ms=config.log_flush_offset_checkpoint_interval_ms,
                flush_start_offset_ms=config.log_flush_start_offset_checkpoint_interval_ms,
                high_watermark_checkpoint_ms=config.replica_high_watermark_checkpoint_interval_ms,
                producer_expiration_check_ms=config.producer_id_expiration_check_interval_ms,
                initial_delay_ms=config.log_initial_task_delay_ms,
            ),
            cleaner=CleanerSettings(
                is_enabled=config.log_cleaner_enable,
                dedupe_buffer_bytes=config.log_cleaner_dedupe_buffer_size,
                pause=self._cleaner_pace.pause,
            ),
            producers=ProducerSettings(
                expiration_ms=config.producer_id_expiration_ms,
                max_transaction_timeout_ms=config.transaction_max_timeout_ms,
                # Whether a producer's word is enough, the handler of Produce decides.
                verifies_transactions=True,
            ),
            jitter_below=lambda limit: random_source.randint(0, max(limit - 1, 0)),
            on_offline=handle_offline,
        )

    def _new_moves(self) -> LogMoves:
        moves = LogMoves(
            self.logs,
            self.throttles.moves,
            self._assign_directory,
            lambda: self._image.metadata_version >= DIRECTORIES,
        )
        self.logs.preferred = moves.preferred
        return moves

    def _new_replicas(self) -> ReplicaManager:
        config = self._config
        return ReplicaManager(
            ReplicaSettings(
                config.node_id,
                inter_broker_listener(config),
                num_replica_fetchers=config.num_replica_fetchers,
                replica_lag_time_max_ms=config.replica_lag_time_max_ms,
                checkpoint_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
            ),
            self.logs,
            fetcher_settings=FetcherSettings(
                config.node_id,
                config.replica_fetch_wait_max_ms,
                config.replica_fetch_min_bytes,
                config.replica_fetch_response_max_bytes,
                config.replica_fetch_max_bytes,
                config.replica_fetch_backoff_ms,
            ),
            min_insync_replicas=self._min_insync_replicas,
            quota=self.throttles.follower,
            places=self.moves,
            full_disk=self._full_disk,
        )

    def _new_groups(self, random_source: RandomSource) -> GroupCoordinator:
        settings = _group_settings(self._config)
        return GroupCoordinator(
            self,
            lambda: settings,
            lambda: UUID(int=random_source.randint(0, (1 << 128) - 1)),
            lambda: creatable_topic(OFFSETS_TOPIC, self.node_configs()).num_partitions,
            ConsumerGroupConfigs(self._node_configs_in).timings,
        )

    def _new_transactions(self) -> TransactionCoordinator:
        settings = _transaction_settings(self._config)
        return TransactionCoordinator(
            self._config.node_id,
            self,
            lambda: settings,
            self.producer_ids.take,
            lambda: creatable_topic(TRANSACTIONS_TOPIC, self.node_configs()).num_partitions,
            self._write_markers,
            self._clock.now_ms,
        )

    def _new_plane(self, waits: Waits, random_source: RandomSource) -> DataPlane:
        config = self._config
        return DataPlane(
            partitions=self,
            sessions=FetchSessions(config.max_incremental_fetch_session_cache_slots, random_source),
            producer_ids=self.producer_ids,
            now_ms=self._clock.now_ms,
            settle_soon=self._runner.settle_soon,
            fetch_max_bytes=config.fetch_max_bytes,
            waits=waits,
            later=lambda work: turns_of(asyncio.get_running_loop()).ask(Work(work)),
            leader_throttle=self.throttles.leader,
            moves=self.moves,
            chooses_replicas=config.replica_selector_class == RACK_AWARE_SELECTOR,
        )

    def _new_fetchers(self, broker_epoch: Callable[[], int]) -> ReplicaFetchers:
        return ReplicaFetchers(
            self.replicas,
            FetchConnections(
                broker_id=self._config.node_id,
                request_timeout_ms=self._config.replica_socket_timeout_ms,
                now_ms=self._clock.now_ms,
                broker_epoch=broker_epoch,
                security=inter_broker_client(self._config),
            ),
            self._handle_fetched,
        )

    def _new_senders(self, purpose: str, queue: PeerQueue) -> PeerSenders:
        return PeerSenders(
            queue,
            f"broker-{self._config.node_id}-{purpose}",
            self._endpoint_of,
            own_id=self._config.node_id,
            request_timeout_ms=self._config.request_timeout_ms,
            now_ms=self._clock.now_ms,
            on_answer=self._runner.settle_soon,
            security=inter_broker_client(self._config),
        )

    def _change_configs(self, delta: MetadataDelta) -> None:
        """A topic's own configs change its logs; those of the broker and the cluster are defaults of all topics."""
        changed = delta.changed_configs
        if not changed:
            return
        self.throttles.change(self._image, changed, self.node_configs())
        topics = {topic for topic, _ in self.logs.manager.logs}
        if all(each.type == TOPIC for each in changed):
            topics &= {each.name for each in changed}
        self.logs.change_configs(topics)

    def _settle(self) -> None:
        self._fetchers.sync()
        self._runner.settle_soon()

    def _handle_made(self, made: Sequence[TopicPartition]) -> None:
        for topic_partition in made:
            self.replicas.log_made(topic_partition)
        self._runner.settle_soon()

    def _sync_fetchers(self) -> None:
        self._fetchers.sync()

    def _handle_fetched(self) -> None:
        self.replicas.fetcher_answered()
        self._settle()

    def _peer_queues(self) -> list[tuple[str, PeerQueue]]:
        return [("markers", self.transactions.markers), ("transactions", self.transactions.questions)]

    def _endpoint_of(self, broker_id: int) -> Endpoint | None:
        broker = self._image.cluster.brokers.get(broker_id)
        return None if broker is None else broker.end_point(inter_broker_listener(self._config))

    def _take_turn(self, now_ms: int) -> bool:
        for sender in self._senders:
            sender.poke()
        return self.transactions.take_turn(now_ms)

    def _write_markers(
        self, request: WriteTxnMarkersRequest, done: Callable[[int, WriteTxnMarkersResponse], None]
    ) -> None:
        """When the broker stops meanwhile, the next coordinator sends them again."""
        timeout_ms = self._config.request_timeout_ms
        write_markers(self.plane, self.groups, request, timeout_ms=timeout_ms, done=done, end=lambda: None)

    def _ask_controller(self) -> None:
        self.poke_alter_partition()

    def log_values(self, topic: str) -> Mapping[str, str]:
        """The configs in force for a topic's logs on this broker."""
        found = effective_topic_configs(
            self._image, topic, self._config.node_id, self._config.as_kafka_keys()
        )
        return {each.name: each.value for each in found if each.value is not None}

    def node_configs(self) -> NodeConfigs:
        return self._node_configs_in(self._image)

    def _node_configs_in(self, image: MetadataImage) -> NodeConfigs:
        return NodeConfigs.of(image, self._config.node_id, self._config.as_kafka_keys())

    def _min_insync_replicas(self, image: MetadataImage, topic: str) -> int:
        own: Mapping[str, str] = image.configs.resources.get(ConfigResource(TOPIC, topic), {})
        value = own.get(_MIN_INSYNC)
        if value is not None:
            return int(value)
        # All topics without their own are asked for at once.
        if self._min_insync_default is None or self._min_insync_default[0] is not image.configs:
            node = self._node_configs_in(image)
            found, _ = node.for_topic(_MIN_INSYNC, TOPIC_CONFIGS[_MIN_INSYNC].default)
            self._min_insync_default = image.configs, int(found or 1)
        return self._min_insync_default[1]


def _throttles(config: NodeConfig) -> ReplicationThrottles:
    return ReplicationThrottles(
        config.node_id,
        Windows(config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1_000),
        Windows(
            config.alter_log_dirs_replication_quota_window_num,
            config.alter_log_dirs_replication_quota_window_size_seconds * 1_000,
        ),
    )


def _group_settings(config: NodeConfig) -> GroupSettings:
    return GroupSettings(
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        metadata_max_bytes=config.offset_metadata_max_bytes,
        commit_timeout_ms=config.offsets_commit_timeout_ms,
        load_buffer_bytes=config.offsets_load_buffer_size,
        retention_ms=config.offsets_retention_minutes * 60_000,
        retention_check_ms=config.offsets_retention_check_interval_ms,
        compression_codec=config.offsets_topic_compression_codec,
        protocols=frozenset(config.group_coordinator_rebalance_protocols),
        consumer_max_size=config.group_consumer_max_size,
        consumer_assignors=tuple(config.group_consumer_assignors),
        consumer_migration=MigrationPolicy(config.group_consumer_migration_policy.lower()),
        consumer_regex_refresh_ms=config.group_consumer_regex_refresh_interval_ms,
    )


def _transaction_settings(config: NodeConfig) -> TransactionSettings:
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        abort_check_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        expiration_ms=config.transactional_id_expiration_ms,
        expiration_check_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        load_buffer_bytes=config.transaction_state_log_load_buffer_size,
        add_retry_ms=config.add_partitions_to_txn_retry_backoff_ms,
        add_retry_max_ms=config.add_partitions_to_txn_retry_backoff_max_ms,
    )


def _usage(
    path: Path, logs: tuple[PartitionLog, ...], futures: tuple[FutureLog, ...], is_offline: bool
) -> DirectoryUsage:
    if is_offline:
        return DirectoryUsage(str(path.absolute()), is_offline=True)
    try:
        disk = shutil.disk_usage(path)
    except OSError:
        return DirectoryUsage(str(path.absolute()), logs=logs, futures=futures)
    return DirectoryUsage(
        str(path.absolute()),
        total_bytes=disk.total,
        usable_bytes=disk.free,
        logs=logs,
        futures=futures,
    )
