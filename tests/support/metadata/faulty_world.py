"""A controller world whose Raft resigns while it appends."""

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from tests.support.controller_world import CLUSTER_ID, FakeRaft, SeededRandomSource, World


class ResigningRaft(FakeRaft):
    def __init__(self) -> None:
        super().__init__()
        self.resigned: list[int] = []

    def resign(self, now_ms: int, leader_epoch: int) -> None:
        self.resigned.append(leader_epoch)
        self.leader_id, self.is_deposed = -1, True


class FaultyWorld(World):
    """A world that records faults; `raft` records resignations."""

    def __init__(self, config: ControllerConfig | None = None) -> None:
        super().__init__(config)
        self.raft: ResigningRaft = ResigningRaft()
        self.faults: list[tuple[str, Exception]] = []
        self.controller = Controller(
            config or ControllerConfig(),
            self.raft,
            SeededRandomSource(),
            CLUSTER_ID,
            on_fault=lambda what, error: self.faults.append((what, error)),
        )
