"""Tells the operator of the active controller which brokers come, stay away and go."""

import logging
from collections.abc import Callable

from metadata.image.cluster import BrokerRegistration
from metadata.image.delta import MetadataDelta

log = logging.getLogger("cli.broker_watch")


class BrokerWatch:
    """Every controller writes it into its log file; the active one warns of brokers that fell silent."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        self._is_active = is_active

    def handle_delta(self, delta: MetadataDelta) -> None:
        former = delta.image.cluster.brokers
        for broker_id, now in delta.cluster.changed_brokers.items():
            before = former.get(broker_id)
            if _fell_silent(before, now) and self._is_active():
                log.warning(
                    "broker %d was fenced: it sent no heartbeat within broker.session.timeout.ms", broker_id
                )
            elif words := _words(before, now):
                log.info("broker %d %s", broker_id, words)


def _fell_silent(before: BrokerRegistration | None, now: BrokerRegistration | None) -> bool:
    """A broker that was asked to leave, or leaves, is fenced without a warning."""
    return (
        before is not None
        and now is not None
        and before.epoch == now.epoch
        and now.fenced
        and not before.fenced
        and not before.in_controlled_shutdown
    )


def _words(before: BrokerRegistration | None, now: BrokerRegistration | None) -> str:
    if now is None:
        return "was unregistered"
    if before is None or before.epoch != now.epoch:
        return f"was registered, with epoch {now.epoch}"
    if now.fenced != before.fenced:
        return "was fenced" if now.fenced else "serves"
    if now.in_controlled_shutdown and not before.in_controlled_shutdown:
        return "is leaving: controlled shutdown"
    return ""
