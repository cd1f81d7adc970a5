"""What a state machine and the rest of a node may ask of their driver: proposals, reads, and requests to the core."""

from collections.abc import Sequence

from raft.adapters.core_view import CoreView
from raft.adapters.delivery import Delivery
from raft.adapters.local_requests import LocalRequests
from raft.errors import NotLeaderError
from raft.messages import Request, Response, TransferLeadershipRequest, TransferLeadershipResponse


class DriverFront(CoreView):
    """The asking half of `RaftDriver`, which has the turns; satisfies raft.ports.RaftPort with it."""

    _callers: LocalRequests
    _delivery: Delivery
    _is_running: bool

    def wake(self) -> None:
        """Have a turn soon."""
        raise NotImplementedError

    # raft.ports.RaftPort, beyond what CoreView answers

    @property
    def applied_offset(self) -> int:
        """The end of what the state machine was given."""
        return self._delivery.applied_offset

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        self._check_running()
        last_offset = self._node.propose(now_ms, leader_epoch, values)
        self.wake()
        return last_offset

    def resign(self, now_ms: int, leader_epoch: int) -> None:
        self._node.resign(now_ms, leader_epoch)
        self.wake()

    def upgrade_kraft_version(
        self, now_ms: int, leader_epoch: int, kraft_version: int, *, validate_only: bool = False
    ) -> str | None:
        self._check_running()
        problem = self._node.upgrade_kraft_version(
            now_ms, leader_epoch, kraft_version, validate_only=validate_only
        )
        self.wake()
        return problem

    # Reads, and requests from this process

    async def read_linearizable(self) -> int:
        """Wait until the state machine has everything that was committed anywhere when this was called; answers the
        offset it has reached. A majority confirms that this replica led then. Raises NotLeaderError."""
        self._check_running()
        return await self._callers.read()

    def read_committed(self) -> int:
        """The end of what the state machine was given. All below it is committed and stays; more may be committed
        elsewhere, so this read may be out of date."""
        return self.applied_offset

    def read_local(self) -> int:
        """The end of this replica's log. What stands above `read_committed` may yet be lost."""
        return self._node.log_end_offset

    async def transfer_leadership(self, target_id: int) -> TransferLeadershipResponse:
        """Hand over to another voter once it has caught up; answers when that voter leads. Raises NotLeaderError when
        the driver ends meanwhile."""
        response = await self.ask(TransferLeadershipRequest(target_id=target_id))
        assert isinstance(response, TransferLeadershipResponse), response
        return response

    async def ask(self, request: Request) -> Response:
        """Have the core answer a request of this process as if a peer had sent it. Raises NotLeaderError when the
        driver is not running, or ends before the answer."""
        self._check_running()
        return await self._callers.ask(request)

    def _check_running(self) -> None:
        if not self._is_running:
            raise NotLeaderError(-1, self._node.leader_epoch)
