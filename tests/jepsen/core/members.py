"""The members of the cluster under test, by node id."""

from dataclasses import dataclass

FIRST_BROKER = 11
CONTROLLERS_MAX = 9


@dataclass(frozen=True, slots=True)
class Members:
    """`spares` are controllers which run as observers until a client adds them to the voters."""

    controllers: tuple[int, ...]
    brokers: tuple[int, ...]
    spares: tuple[int, ...] = ()

    @classmethod
    def of(cls, controllers: int, brokers: int, spares: int = 0) -> "Members":
        assert 0 < controllers + spares <= CONTROLLERS_MAX, "ids from FIRST_BROKER on are those of brokers"
        ids = tuple(range(1, controllers + spares + 1))
        return cls(ids[:controllers], tuple(range(FIRST_BROKER, FIRST_BROKER + brokers)), ids[controllers:])

    @property
    def quorum(self) -> tuple[int, ...]:
        """Every node that holds the metadata log as a controller, voter or not."""
        return self.controllers + self.spares

    @property
    def all(self) -> tuple[int, ...]:
        return self.quorum + self.brokers
