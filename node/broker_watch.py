"""Tells the operator of the active controller which brokers come, stay away and go."""

import logging
from collections.abc import Callable

from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.delta import MetadataDelta

log = logging.getLogger("node.broker_watch")


class BrokerWatch:
    """Every controller writes it into its log file; the active one warns of brokers that fell silent."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        self._is_active = is_active
        # Ids and epochs of those whose fence is decided and not seen yet: the record of it does not say why.
        self._silent: set[tuple[int, int]] = set()

    def handle_silence(self, broker: BrokerRegistration) -> None:
        """The active controller fences it, for it sent no heartbeat; told before the delta that does so."""
        self._silent.add((broker.id, broker.epoch))

    def handle_delta(self, delta: MetadataDelta) -> None:
        if not self._is_active():
            self._silent.clear()  # what was decided may be lost, and another one's fences have causes of their own
        former = delta.image.cluster.brokers
        for broker_id, now in delta.cluster.changed_brokers.items():
            before = former.get(broker_id)
            if now is not None and _is_fenced_now(before, now) and self._takes_silent(now):
                log.warning(
                    "broker %d was fenced: it sent no heartbeat within broker.session.timeout.ms", broker_id
                )
            elif words := _words(before, now):
                log.info("broker %d %s", broker_id, words)

    def _takes_silent(self, broker: BrokerRegistration) -> bool:
        key = (broker.id, broker.epoch)
        is_silent = key in self._silent
        self._silent.discard(key)
        return is_silent


def _is_fenced_now(before: BrokerRegistration | None, now: BrokerRegistration) -> bool:
    return before is not None and before.epoch == now.epoch and now.fenced and not before.fenced


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
