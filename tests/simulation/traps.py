"""Deaths at the worst moment: set by the schedule, sprung by what a replica does next."""

from typing import TYPE_CHECKING

from kquorum.raft.messages import Request, Response, VoteRequest, VoteResponse
from kquorum.raft.ready import RoleChanged
from tests.simulation.hosts import Host
from tests.simulation.schedule import Action

if TYPE_CHECKING:
    from tests.simulation.world import World


class Traps:
    """Each is sprung once."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.after_vote: list[Action] = []
        self.new_leader: list[Action] = []
        self.snapshot_steps: list[Action] = []

    def clear(self) -> None:
        self.after_vote.clear()
        self.new_leader.clear()
        self.snapshot_steps.clear()

    def response_leaves(self, host: Host, request: Request, response: Response) -> None:
        """The worst moment for a voter to die is right after its word was given."""
        if not self.after_vote or not isinstance(response, VoteResponse) or not response.vote_granted:
            return
        if isinstance(request, VoteRequest) and not request.pre_vote:
            self._spring(self.after_vote.pop(0), host, 0)

    def role_taken(self, host: Host, change: RoleChanged) -> None:
        """Epochs that end before their first record has spread are how logs come to differ (Raft, figure 8)."""
        if self.new_leader and change.role == "leader":
            action = self.new_leader.pop(0)
            self._spring(action, host, action.amount)

    # Snapshots: which step it is, is the action's amount (`snapshots.PIECE_WRITTEN` and so on)

    def is_set(self, step: int) -> bool:
        return any(action.amount == step for action in self.snapshot_steps)

    def is_dying(self, host: Host, step: int) -> bool:
        """Whether the process dies after this step."""
        action = next((action for action in self.snapshot_steps if action.amount == step), None)
        if action is None:
            return False
        self.snapshot_steps.remove(action)
        self.world.tally["deaths over snapshots"] += 1
        self.world.crash_and_revive(host, action.for_ms)
        return True

    def piece_written(self, host: Host) -> None:
        """In the middle of a turn: it dies right after."""
        action = next((action for action in self.snapshot_steps if action.amount == 0), None)
        if action is not None:
            self.snapshot_steps.remove(action)
            self._spring(action, host, 0)

    def _spring(self, action: Action, host: Host, delay_ms: int) -> None:
        self.world.at(delay_ms, self._strike, host, host.life, action.for_ms)

    def _strike(self, host: Host, life: int, revive_ms: int) -> None:
        if self.world.is_faulty and host.life == life:
            self.world.crash_and_revive(host, revive_ms)
