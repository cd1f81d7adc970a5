"""A node at work: its replica of the log with a controller, a broker or both on top, and the listeners for operators.

A process of both roles has one replica and one image: the controller is the log's state machine, and what it publishes
as committed is what the broker serves. It leaves as Kafka's does: the broker first, whose controlled shutdown may be
granted by the controller beside it, then the controller, which hands leadership over.
"""

from typing import TYPE_CHECKING

from kquorum.broker.image_feed import ImageFeed
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.state_machine import BrokerStateMachine
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.security.reloading import ReloadingContext
from kquorum.network.server import KafkaServer
from kquorum.node.broker_calls import broker_calls, member_gate
from kquorum.node.commit_watch import CommitWatch
from kquorum.node.config.model import NodeConfig
from kquorum.node.controller import ControllerRole
from kquorum.node.folders import NodeFolders
from kquorum.node.free_addresses import check_addresses_are_free
from kquorum.node.http_listener import start_metrics
from kquorum.node.inspect_source import NodeInspectSource
from kquorum.node.members_source import NodeMembersSource
from kquorum.node.observability.latency import LatencyMeter
from kquorum.node.quorum_member import Fatal, QuorumMember
from kquorum.node.quorum_source import NodeQuorumSource
from kquorum.node.security import grpc_security
from kquorum.node.servers import StoppableServer, start_grpc
from kquorum.node.tls_watch import TlsWatch
from kquorum.raft.adapters.clock import MonotonicWallClock

if TYPE_CHECKING:
    from kquorum.metadata.grpc.server import InspectServer
    from kquorum.node.broker import BrokerRole


class ClusterNode:
    """The roles are those of the config; `start` and `stop` are once each."""

    def __init__(
        self, config: NodeConfig, folders: NodeFolders, clock: MonotonicWallClock, fatal: Fatal
    ) -> None:
        self.config = config
        self.clock = clock
        self._fatal = fatal
        self.member = QuorumMember(config, folders, clock, fatal)
        # Of committed records that could not be replayed.
        self.skipped_records = 0
        self.commit_latency = LatencyMeter()
        self.controller: ControllerRole | None = None
        self.broker: BrokerRole | None = None
        self.machine: Controller | BrokerStateMachine
        if config.is_controller:
            self.controller = ControllerRole(config, folders, clock, self.member)
            self.machine = self.controller.controller
        else:
            self.machine = self._broker_machine()
        if config.is_broker:
            self.broker = self._broker_role(folders)
        self.commits = CommitWatch(self.member, lambda: self.committed_image, warns=config.is_broker)
        self._watchers: list[StoppableServer] = []
        self.grpc_server: InspectServer | None = None
        self._tls_watch: TlsWatch | None = None

    @property
    def committed_image(self) -> MetadataImage:
        """What this node serves."""
        return (
            self.machine.image
            if isinstance(self.machine, BrokerStateMachine)
            else self.machine.committed_image
        )

    @property
    def servers(self) -> tuple[tuple[str, KafkaServer], ...]:
        """The listeners of Kafka's protocol that are open, by name."""
        open_ones: list[tuple[str, KafkaServer]] = []
        # Each role opens them in the config's order, one after the other.
        if self.controller is not None:
            names = (each.name for each in self.config.controller_listeners)
            open_ones.extend(zip(names, self.controller.servers, strict=False))
        if self.broker is not None:
            names = (each.name for each in self.config.broker_listeners)
            open_ones.extend(zip(names, self.broker.servers, strict=False))
        return tuple(open_ones)

    async def start(self) -> None:
        """Returns once it serves. Raises CannotListen, or NotRegistered when no controller takes the broker; what was
        started is stopped by `stop` then too."""
        check_addresses_are_free(self.config)
        source = NodeInspectSource(
            self.member,
            self.commits,
            lambda: self.committed_image,
            local_image=lambda: self.machine.image,
            min_insync_replicas=self.config.min_insync_replicas,
        )
        for role in (self.controller, self.broker):
            if role is not None:
                role.attach()
        self._publish_to(source)
        self.member.start(self.machine)
        self.commits.start()
        if self.controller is not None:
            await self.controller.listen()
        await self._start_watchers(source)
        if self.controller is not None:
            self.controller.register()
        if self.broker is not None:
            await self.broker.start()
        self._watch_tls()

    async def stop(self) -> None:
        """In good order: clients, partitions and the quorum are left before the log is closed."""
        if self._tls_watch is not None:
            await self._tls_watch.stop()
        if self.broker is not None:
            await self.broker.stop()
        if self.controller is not None:
            self.controller.end_registration()
        self.commits.close()
        await self.member.leave()
        if self.controller is not None:
            await self.controller.stop()
        for watcher in reversed(self._watchers):
            await watcher.stop()
        self.member.close()

    def _watch_tls(self) -> None:
        contexts = [self.member.security.ssl_context]
        contexts += [server.security.ssl_context for _, server in self.servers]
        if self.grpc_server is not None:
            contexts.append(self.grpc_server.security.ssl_context)
        self._tls_watch = TlsWatch(each.material for each in contexts if isinstance(each, ReloadingContext))
        self._tls_watch.start()

    async def _start_watchers(self, source: NodeInspectSource) -> None:
        grpc_server = self.grpc_server = await start_grpc(
            self.config,
            source,
            NodeQuorumSource(self.member),
            NodeMembersSource(self),
            lambda: broker_calls(self.config, self.member),
            lambda: member_gate(self.config, self.member, lambda: self.committed_image),
            grpc_security(self.config),
        )
        if grpc_server is not None:
            self._watchers.append(grpc_server)
        http_server = await start_metrics(self)
        if http_server is not None:
            self._watchers.append(http_server)

    def _broker_machine(self) -> BrokerStateMachine:
        machine = BrokerStateMachine(MetadataCache())
        machine.fault_observers.append(self._handle_skipped)
        machine.fault_observers.append(self.member.snapshots.disable)
        return machine

    def _handle_skipped(self, _reason: str) -> None:
        self.skipped_records += 1

    def _broker_role(self, folders: NodeFolders) -> "BrokerRole":
        # A node that is only a controller starts a fifth sooner without a broker's modules.
        from kquorum.node.broker import BrokerRole

        return BrokerRole(self.config, folders, self.clock, self.member, self._feed(), self._fatal)

    def _feed(self) -> ImageFeed:
        """Where the broker's images come from: its own reading of the log, or the controller's."""
        machine = self.machine
        if isinstance(machine, BrokerStateMachine):
            return machine.feed
        feed = ImageFeed(MetadataCache())
        machine.publishers.append(lambda image, delta: feed.publish(self.clock.now_ms(), delta, image))
        return feed

    def _publish_to(self, source: NodeInspectSource) -> None:
        """Each committed image also goes to the snapshots, to the state hashes, and last to the gRPC watches."""

        def publish(image: MetadataImage, delta: MetadataDelta) -> None:
            self.member.snapshots.publish(delta, image)
            self.member.states.handle_own(image.provenance.last_contained_offset, self.machine.state_hash)
            source.publish(delta, image)
            self._note_latency(image)

        if isinstance(self.machine, BrokerStateMachine):
            self.machine.observers.append(lambda _now_ms, delta, image: publish(image, delta))
        else:
            self.machine.publishers.append(publish)

    def _note_latency(self, image: MetadataImage) -> None:
        """A leader's own records bear the time at which it appended them, by the same clock."""
        if self.member.driver.leader_id == self.config.node_id:
            now_ms = self.clock.now_ms()
            self.commit_latency.record(now_ms, max(now_ms - image.provenance.timestamp_ms, 0))
