"""The election state in memory: a fake for tests and simulation, held to the same contract as the file."""

from kquorum.raft.ready import QuorumState


class QuorumStateMemory:
    """Satisfies raft.ports.QuorumStateStore. A write is durable on return, so `crash()` loses nothing."""

    def __init__(self, state: QuorumState | None = None) -> None:
        self._state = state
        self.writes = 0

    def read(self) -> QuorumState | None:
        return self._state

    def write(self, state: QuorumState) -> None:
        self._state = state
        self.writes += 1

    def crash(self) -> None:
        """Nothing is lost: there is no unflushed part."""
