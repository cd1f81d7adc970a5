"""When the active controller last received a heartbeat of each broker. None of this is in the log: a controller that
has just become active knows nothing, and gives every broker a full session."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kquorum.metadata.image.cluster import BrokerRegistration

UNKNOWN_OFFSET = -1


@dataclass(frozen=True, slots=True)
class Contact:
    """`shutdown_offset` is set once a broker entered controlled shutdown: how far the others must have read."""

    at_ms: int
    metadata_offset: int = UNKNOWN_OFFSET
    shutdown_offset: int | None = None


class BrokerLiveness:
    def __init__(self, now_ms: int, session_timeout_ms: int, brokers: Iterable[int]) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._contacts = {broker_id: Contact(now_ms) for broker_id in brokers}
        self._being_removed: set[int] = set()

    def register(self, broker_id: int, now_ms: int, *, is_new_incarnation: bool) -> None:
        """A new process has not replayed what the old one had."""
        contact = self._contacts.get(broker_id)
        if contact is None or is_new_incarnation:
            self._contacts[broker_id] = Contact(now_ms)
        else:
            self._contacts[broker_id] = replace(contact, at_ms=now_ms)

    def touch(self, broker_id: int, now_ms: int, metadata_offset: int, *, fenced: bool) -> None:
        """A heartbeat; being fenced ends a controlled shutdown."""
        contact = self._contacts.get(broker_id, Contact(now_ms))
        shutdown_offset = None if fenced else contact.shutdown_offset
        self._contacts[broker_id] = Contact(now_ms, metadata_offset, shutdown_offset)

    def refresh(self, broker_id: int, now_ms: int) -> None:
        """Extends the session after a heartbeat that came too late to be acted on."""
        contact = self._contacts.get(broker_id)
        if contact is not None:
            self._contacts[broker_id] = replace(contact, at_ms=now_ms)

    def begin_removal(self, broker_id: int) -> None:
        """From now until `end_removal` the broker may neither join an ISR nor lead: it is removed from its partitions
        in turns."""
        self._being_removed.add(broker_id)

    def end_removal(self, broker_id: int) -> None:
        self._being_removed.discard(broker_id)

    def is_being_removed(self, broker_id: int) -> bool:
        return broker_id in self._being_removed

    def remove(self, broker_id: int) -> None:
        self._contacts.pop(broker_id, None)
        self._being_removed.discard(broker_id)

    def end_controlled_shutdown(self, broker_id: int) -> None:
        contact = self._contacts.get(broker_id)
        if contact is not None:
            self._contacts[broker_id] = replace(contact, shutdown_offset=None)

    def begin_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Set once: the offset that other brokers must reach stays fixed while the broker waits."""
        contact = self._contacts[broker_id]
        if contact.shutdown_offset is None:
            self._contacts[broker_id] = replace(contact, shutdown_offset=offset)

    def move_shutdown_offset(self, broker_id: int, offset: int) -> None:
        """More of its partitions got another leader."""
        contact = self._contacts.get(broker_id)
        if contact is not None and contact.shutdown_offset is not None:
            self._contacts[broker_id] = replace(contact, shutdown_offset=offset)

    def contact_of(self, broker_id: int) -> Contact | None:
        return self._contacts.get(broker_id)

    def shutdown_offset(self, broker_id: int) -> int | None:
        contact = self._contacts.get(broker_id)
        return None if contact is None else contact.shutdown_offset

    def has_valid_session(self, broker: BrokerRegistration, now_ms: int) -> bool:
        """A fenced broker has none, so that a new process may take its id at once."""
        return not broker.fenced and now_ms <= self._expires_at_ms(broker.id)

    def session_ends_in_ms(self, broker_id: int, now_ms: int) -> int:
        """The time until its id is free, unless a heartbeat comes first."""
        return max(0, self._expires_at_ms(broker_id) + 1 - now_ms)

    def stale_broker(self, brokers: Iterable[BrokerRegistration], now_ms: int) -> BrokerRegistration | None:
        """The unfenced broker whose session ended first."""
        stale = [each for each in brokers if not each.fenced and self._expires_at_ms(each.id) < now_ms]
        return min(stale, key=lambda broker: (self._expires_at_ms(broker.id), broker.id), default=None)

    def next_expiry_ms(self, brokers: Iterable[BrokerRegistration]) -> int | None:
        """The first moment at which a broker is stale."""
        return min((self._expires_at_ms(each.id) + 1 for each in brokers if not each.fenced), default=None)

    def lowest_active_offset(self, brokers: Iterable[BrokerRegistration]) -> int | None:
        """The offset that the slowest active broker (unfenced and not shutting down) has replayed; None if there is
        none."""
        contacts = (self._contacts.get(broker.id) for broker in brokers if not broker.fenced)
        return min(
            (each.metadata_offset for each in contacts if each is not None and each.shutdown_offset is None),
            default=None,
        )

    def _expires_at_ms(self, broker_id: int) -> int:
        contact = self._contacts.get(broker_id)
        return -1 if contact is None else contact.at_ms + self._session_timeout_ms
