"""What a broker says of itself, and how often it speaks: the values of its lifecycle."""

from dataclasses import dataclass
from uuid import UUID

from kquorum.metadata.configs.table import default_number
from kquorum.wire.messages.broker_registration import Feature, Listener

NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """Times in milliseconds; the defaults are those of the table of configs."""

    heartbeat_interval_ms: int = default_number("broker.heartbeat.interval.ms")
    session_timeout_ms: int = default_number("broker.session.timeout.ms")
    initial_registration_timeout_ms: int = default_number("initial.broker.registration.timeout.ms")
    log_dir_failure_timeout_ms: int = default_number("log.dir.failure.timeout.ms")

    @property
    def request_retry_timeout_ms(self) -> int:
        """Half the session, so that a request stuck at a dead controller cannot eat it."""
        return max(1, self.session_timeout_ms // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdentity:
    """What a registration says (BrokerRegistrationRequest)."""

    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]
    rack: str | None = None
    log_dirs: tuple[UUID, ...] = ()
    previous_broker_epoch: int = NO_EPOCH
