"""Controllers that lose their leader again and again: processes of `kquorum start`, their links cut where wanted."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag
from kquorum.cli.failures import CliError
from kquorum.cli.processes import NodeFailed, wait_until
from kquorum.node.config.addresses import HostPort
from tests.jepsen.net.network import isolation
from tests.jepsen.net.proxies import ProxyNetwork
from tests.support.cluster import Cluster

STATUS_TIMEOUT_S = 60.0
# The client writes for hours; what a controller has to replay when it is started should not grow with them.
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": 1024 * 1024}


# On the network, any client that goes to a leader's advertised listener, which is the same for all.
ANYONE = 0


class FailoverCluster(Cluster):
    """Controllers only, with gRPC. With `links_can_be_cut` they reach each other through proxies of this process, and
    are a static quorum, whose voters each finds in its own config; clients always connect directly."""

    def __init__(
        self, folder: Path, controllers: int, overrides: Mapping[str, object], *, links_can_be_cut: bool
    ) -> None:
        node_ids = range(1, controllers + 1)
        self._stack = ExitStack()
        self._network: ProxyNetwork | None = None
        routes: dict[int, dict[str, object]] = {}
        if links_can_be_cut:
            self._network = self._stack.enter_context(ProxyNetwork((ANYONE, *node_ids), node_ids))
            routes = {node_id: _routes_of(node_id, node_ids, self._network) for node_id in node_ids}
        super().__init__(
            folder,
            controllers=controllers,
            brokers=0,
            overrides={**SNAPSHOTS, **overrides},
            node_overrides=routes,
            with_grpc=True,
        )
        if self._network is not None:
            self.ports = {node_id: self._network.address_of(node_id).port for node_id in node_ids}

    def __enter__(self) -> Self:
        """All of them run."""
        super().__enter__()
        try:
            self.start()
        except BaseException:
            self.destroy()
            raise
        return self

    def destroy(self) -> None:
        try:
            super().destroy()
        finally:
            self._stack.close()

    def isolate(self, node_id: int) -> None:
        assert self._network is not None, "only links through proxies can be cut"
        self._network.cut(isolation(node_id, (ANYONE, *self.controller_ids)))

    def heal(self) -> None:
        assert self._network is not None
        self._network.heal()

    def epoch_above(self, epoch: int) -> int:
        """Of the leader that came after; one that still believes to lead in an earlier epoch is not heard."""
        return self._await_status(
            lambda status: status.leader_epoch > epoch, "no controller led in a later epoch"
        ).leader_epoch

    def settle(self, lowest_epoch: int) -> QuorumStatus:
        """Wait until all voters have the log as it stood when this was called, and its image, under one leader of such
        an epoch. So one that was deposed has stepped down and follows, and one that was started has replayed its log:
        before that it is slow to vote."""
        first = self._await_status(
            lambda status: status.leader_epoch >= lowest_epoch, "no controller led again"
        )
        target = max(voter.log_end_offset or 0 for voter in first.voters)

        def is_level(status: QuorumStatus) -> bool:
            return (
                status.leader_epoch >= first.leader_epoch and min(map(replayed_to, status.voters)) >= target
            )

        return self._await_status(is_level, "the controllers were not level")

    def _await_status(self, wanted: Callable[[QuorumStatus], bool], otherwise: str) -> QuorumStatus:
        found: list[QuorumStatus] = []

        def is_there() -> bool:
            try:
                found.append(self.quorum())
            except CliError:
                return False
            return wanted(found[-1])

        if not wait_until(is_there, STATUS_TIMEOUT_S, interval_s=0.05):
            raise NodeFailed(f"{otherwise} within {STATUS_TIMEOUT_S:.0f} s:\n{self.tails()}")
        return found[-1]


def replayed_to(voter: ReplicaLag) -> int:
    """The end of what it has in its log and in its image; -1 while the leader knows less."""
    if voter.log_end_offset is None or voter.state is None:
        return -1
    return min(voter.log_end_offset, voter.state.offset + 1)


def _routes_of(reader: int, node_ids: Iterable[int], network: ProxyNetwork) -> dict[str, object]:
    """Where this node finds the others, and where it says that it is found: followers go there, once it leads."""
    voters = [f"{node_id}@{_text(network.route(reader, node_id))}" for node_id in node_ids]
    advertised = f"CONTROLLER://{_text(network.route(ANYONE, reader))}"
    return {"controller.quorum.voters": ",".join(voters), "advertised.listeners": advertised}


def _text(address: HostPort) -> str:
    return f"{address.host}:{address.port}"
