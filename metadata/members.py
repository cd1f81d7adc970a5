"""How far the brokers follow the metadata: their registrations, and what they reported to the active controller.

A broker says what it has applied in its heartbeats, and our own also with their Fetches, which come more often. Either
is true of the moment when it was sent: a broker never goes back within one registration, and what a former process of
it said was applied by the present one before it was let in.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kquorum.metadata.controller.brokers.liveness import Contact
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.image import MetadataImage

UNKNOWN: Final = -1


class BrokerStanding(Enum):
    """What the controllers make of a broker."""

    FENCED = "fenced"
    ACTIVE = "active"
    IN_CONTROLLED_SHUTDOWN = "in controlled shutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProgress:
    """`applied_offset` is the last in the broker's image, `lag` how many committed records it lacks, `silent_ms` how
    long ago its last heartbeat came; -1 while the active controller has not heard."""

    registration: BrokerRegistration
    applied_offset: int = UNKNOWN
    lag: int = UNKNOWN
    silent_ms: int = UNKNOWN

    @property
    def broker_id(self) -> int:
        return self.registration.id

    @property
    def standing(self) -> BrokerStanding:
        if self.registration.fenced:
            return BrokerStanding.FENCED
        leaves = self.registration.in_controlled_shutdown
        return BrokerStanding.IN_CONTROLLED_SHUTDOWN if leaves else BrokerStanding.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """Of the brokers that have not applied `offset`: those to be waited for, and those that are fenced."""

    offset: int
    lagging: tuple[BrokerProgress, ...]
    fenced: tuple[BrokerProgress, ...]

    @property
    def is_applied(self) -> bool:
        return not self.lagging


def progress_of_brokers(
    now_ms: int,
    image: MetadataImage,
    contact_of: Callable[[int], Contact | None],
    reported: Mapping[int, int],
) -> tuple[BrokerProgress, ...]:
    """By id. `image` is the committed one; `reported` is what was told otherwise than by heartbeats, by broker."""
    committed = image.provenance.last_contained_offset
    return tuple(
        _progress(now_ms, broker, committed, contact_of(broker_id), reported.get(broker_id, UNKNOWN))
        for broker_id, broker in sorted(image.cluster.brokers.items())
    )


def waited_for(offset: int, brokers: Iterable[BrokerProgress]) -> Waited:
    behind = [broker for broker in brokers if broker.applied_offset < offset]
    return Waited(
        offset=offset,
        lagging=tuple(broker for broker in behind if broker.standing is not BrokerStanding.FENCED),
        fenced=tuple(broker for broker in behind if broker.standing is BrokerStanding.FENCED),
    )


def _progress(
    now_ms: int, broker: BrokerRegistration, committed: int, contact: Contact | None, reported: int
) -> BrokerProgress:
    applied = max(reported, UNKNOWN if contact is None else contact.metadata_offset)
    return BrokerProgress(
        registration=broker,
        applied_offset=applied,
        lag=UNKNOWN if applied == UNKNOWN else max(committed - applied, 0),
        silent_ms=UNKNOWN if contact is None else max(now_ms - contact.at_ms, 0),
    )
