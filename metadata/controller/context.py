"""The state that a handler may read for its decision."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from immutables import Map

from kquorum.metadata.controller.brokers.liveness import BrokerLiveness
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.mutation_quotas import Buckets, MutationCharges, MutationQuotas
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.configs import BROKER, CLUSTER_DEFAULT, TOPIC, ConfigResource
from kquorum.metadata.image.directories import MIGRATING, UNASSIGNED
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.raft.ports import RandomSource
from kquorum.wire.messages.error_codes import ErrorCode

UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
MIN_IN_SYNC_REPLICAS = "min.insync.replicas"


@dataclass(slots=True, init=False)
class DecisionContext:
    """Made for each decision, and not frozen because that takes three times as long; a handler changes none of it.

    `image` includes what is proposed and not yet committed; `next_offset` is where the decision's first record
    will stand. `registration_offsets` are those of each broker's registration record. `upgrade_kraft_version(level,
    validate_only)` answers why not, or None; unless it only validates, it has appended the change. `voter_ids` are
    those of the quorum, and `kraft_version` the level at which it runs. `token_writes` has a bucket for each owner of
    delegation tokens.
    """

    now_ms: int
    node_id: int
    cluster_id: str
    image: MetadataImage
    next_offset: int
    config: ControllerConfig
    random_source: RandomSource
    liveness: BrokerLiveness
    registration_offsets: Map[int, int]
    upgrade_kraft_version: Callable[[int, bool], str | None]
    voter_ids: Callable[[], Collection[int]]
    kraft_version: Callable[[], int]
    mutation_quotas: MutationQuotas
    mutation_charges: MutationCharges
    token_writes: Buckets[str]

    def __init__(
        self,
        *,
        now_ms: int,
        node_id: int,
        cluster_id: str,
        image: MetadataImage,
        next_offset: int,
        config: ControllerConfig,
        random_source: RandomSource,
        liveness: BrokerLiveness,
        registration_offsets: Map[int, int],
        upgrade_kraft_version: Callable[[int, bool], str | None],
        voter_ids: Callable[[], Collection[int]] = tuple,
        kraft_version: Callable[[], int] = int,
        mutation_quotas: MutationQuotas | None = None,
        mutation_charges: MutationCharges | None = None,
        token_writes: Buckets[str] | None = None,
    ) -> None:
        self.now_ms = now_ms
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.image = image
        self.next_offset = next_offset
        self.config = config
        self.random_source = random_source
        self.liveness = liveness
        self.registration_offsets = registration_offsets
        self.upgrade_kraft_version = upgrade_kraft_version
        self.voter_ids = voter_ids
        self.kraft_version = kraft_version
        self.mutation_quotas = (
            MutationQuotas(window_ms=11_000) if mutation_quotas is None else mutation_quotas
        )
        self.mutation_charges = MutationCharges() if mutation_charges is None else mutation_charges
        self.token_writes = Buckets() if token_writes is None else token_writes

    def charge_mutations(self, request: ControllerRequest, permits: int) -> None:
        """Once for each topic, with the number of partitions created, added or deleted, before its records are made.

        Raises THROTTLING_QUOTA_EXCEEDED for an entry that is to be refused (KIP-599); the answer's throttle time is
        set by the write path.
        """
        self.mutation_quotas.charge(
            self.image.client_quotas, request, permits, self.now_ms, self.mutation_charges
        )

    @property
    def metadata_version(self) -> int:
        return self.image.metadata_version

    def check_broker_epoch(self, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        """Raises STALE_BROKER_EPOCH for a broker which is not registered, or is under another epoch."""
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.stale_broker_epoch, f"Broker {broker_id} is not registered.")
        if broker.epoch != broker_epoch:
            reason = f"Broker {broker_id} has epoch {broker.epoch}; the request came with {broker_epoch}."
            raise ApiError(ErrorCode.stale_broker_epoch, reason)
        return broker

    def is_leaving(self, broker: BrokerRegistration) -> bool:
        """Whether it is in controlled shutdown; below 3.3-IV3 the metadata do not say so."""
        return broker.in_controlled_shutdown or self.liveness.shutdown_offset(broker.id) is not None

    def default_directory(self, broker_id: int) -> UUID:
        """The directory of a new replica (KIP-858): the only one that is not cordoned, else the broker chooses."""
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None or not broker.log_dirs:
            return MIGRATING
        directories = broker.uncordoned_log_dirs
        return directories[0] if len(directories) == 1 else UNASSIGNED

    def allows_unclean_election(self, topic_name: str) -> bool:
        value = self._effective_config(topic_name, UNCLEAN_LEADER_ELECTION)
        return (
            self.config.unclean_leader_election_enable if value is None else value.strip().lower() == "true"
        )

    @property
    def is_elr_enabled(self) -> bool:
        """Whether the cluster keeps eligible leader replicas (KIP-966)."""
        return self.image.features.finalized.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def min_in_sync_replicas(self, topic_name: str) -> int | None:
        """The ISR size from which eligible leader replicas are not needed; None without them. A partition may have
        fewer replicas than that."""
        if not self.is_elr_enabled:
            return None
        return int(
            self._effective_config(topic_name, MIN_IN_SYNC_REPLICAS) or self.config.min_insync_replicas
        )

    def _effective_config(self, topic_name: str, key: str) -> str | None:
        """Precedence: the topic's own value, this node's, the cluster's, the config file's."""
        resources = (
            ConfigResource(TOPIC, topic_name),
            ConfigResource(BROKER, str(self.node_id)),
            ConfigResource(BROKER, CLUSTER_DEFAULT),
        )
        values = (self.image.configs.value(resource, key) for resource in resources)
        return next((value for value in values if value is not None), None)

    def random_uuid(self) -> UUID:
        """A version 4 id whose text does not begin with "-", which would look like an option on a command line."""
        while True:
            drawn = UUID(
                int=sum(self.random_source.randint(0, 2**32 - 1) << shift for shift in (0, 32, 64, 96)),
                version=4,
            )
            if drawn.bytes[0] >> 2 != _DASH_IN_BASE64:
                return drawn


_DASH_IN_BASE64 = 62
