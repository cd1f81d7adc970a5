"""What the clients were told of each topic, and what must therefore be in the state at the end."""

from collections import Counter
from collections.abc import Set as AbstractSet
from enum import StrEnum
from threading import Lock


class Fate(StrEnum):
    """`IN_DOUBT`: a request was sent and its outcome is unknown; either outcome is valid."""

    PRESENT = "present"
    ABSENT = "absent"
    IN_DOUBT = "in doubt"


class Ledger:
    """No name is used twice, so a topic is created once and deleted once. Used by several threads."""

    def __init__(self) -> None:
        self._fates: dict[str, Fate] = {}
        self._told: Counter[str] = Counter()
        self._lock = Lock()

    def begin(self, name: str) -> None:
        """A request about this topic is on its way."""
        self._set(name, Fate.IN_DOUBT, None)

    def created(self, name: str) -> None:
        self._set(name, Fate.PRESENT, "created")

    def deleted(self, name: str) -> None:
        self._set(name, Fate.ABSENT, "deleted")

    def refused(self, name: str, fate: Fate) -> None:
        """The request surely had no effect, so the topic is as it was before."""
        self._set(name, fate, "refused")

    def unanswered(self) -> None:
        with self._lock:
            self._told["unanswered"] += 1

    def _set(self, name: str, fate: Fate, told: str | None) -> None:
        with self._lock:
            self._fates[name] = fate
            if told is not None:
                self._told[told] += 1

    @property
    def acknowledged(self) -> int:
        """How many requests had their effect acknowledged."""
        with self._lock:
            return self._told["created"] + self._told["deleted"]

    def counts(self) -> dict[str, int]:
        """Requests by their outcome."""
        with self._lock:
            return {told: self._told[told] for told in ("created", "deleted", "refused", "unanswered")}

    def violations(self, topics: AbstractSet[str], where: str) -> list[str]:
        """What is wrong with the topics that were found somewhere at the end."""
        with self._lock:
            fates = dict(self._fates)
        lost = sorted(name for name, fate in fates.items() if fate is Fate.PRESENT and name not in topics)
        back = sorted(name for name, fate in fates.items() if fate is Fate.ABSENT and name in topics)
        unknown = sorted(topics - fates.keys())
        return [
            *(f"{where}: topic {name} was acknowledged as created, and is lost" for name in lost),
            *(f"{where}: topic {name} was deleted or never made, and is there" for name in back),
            *(f"{where}: topic {name} was never asked for" for name in unknown),
        ]
