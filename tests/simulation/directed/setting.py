"""The world before the play begins: nothing is left to chance, and the core is watched."""

from dataclasses import replace

from kquorum.raft.messages import Request, Response
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import Ready
from kquorum.raft.voters import VotersAt
from tests.simulation.directed.watch import Watch
from tests.simulation.hosts import Host
from tests.simulation.membership import Operator
from tests.simulation.options import Options
from tests.simulation.run import plan_of
from tests.simulation.world import World


class Setting(World):
    """Every message takes a millisecond, flushes take no time, clocks are right.

    `dynamic` begins with a bootstrap checkpoint (kraft.version 1); spares may become voters.
    """

    def __init__(
        self,
        voters: int = 3,
        spares: int = 0,
        *,
        observers: int = 0,
        dynamic: bool = False,
        auto_join: bool = False,
        election_timeout_ms: int = 100,
        fetch_timeout_ms: int = 300,
        max_fetch_bytes: int = 1_000_000,
        snapshot_padding: int = 0,
    ) -> None:
        self.watch = Watch(self)
        options = replace(
            _calm(plan_of(1)[0]),
            quorum="dynamic" if dynamic else "static",
            voters=voters,
            spares=spares,
            observers=observers,
            auto_join=auto_join,
            election_timeout_ms=election_timeout_ms,
            fetch_timeout_ms=fetch_timeout_ms,
            max_fetch_bytes=max_fetch_bytes,
            snapshot_padding=snapshot_padding,
        )
        super().__init__(1, options, _spied(self), is_traced=True)
        self.operator = Script(self)

    @property
    def is_dynamic(self) -> bool:
        return self.options.quorum == "dynamic"

    def voter_sets(self, host: Host) -> list[VotersAt]:
        """What the disk says of the voters, from the bootstrap checkpoint on."""
        first = [record for record in host.disk.bootstrap if isinstance(record, VotersAt)]
        return first + host.disk.voter_sets

    def turn(self, host: Host) -> None:
        super().turn(host)
        if host.node is not None:
            self.watch.after_turn(host, host.node)


class Script(Operator):
    """The operator does what the script says, and hears the answers."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.answers: list[tuple[Request, Response]] = []

    def answered(self, host: Host, request: Request, response: Response) -> None:
        assert isinstance(self.world, Setting)
        self.world.watch.answered(host, response)
        self.answers.append((request, response))

    def answer_to(self, request: Request) -> Response | None:
        return next((response for asked, response in self.answers if asked is request), None)


def _calm(options: Options) -> Options:
    return replace(
        options,
        delay_ms_max=1,
        flush_ms_max=0,
        state_ms_max=0,
        clock_drift_percent=0,
        shares_turns=False,
        uses_wire=False,
        mixes_releases=False,
        snapshot_bytes=0,
        retention_percent=0,
        segment_batches=2,
    )


def _spied(setting: Setting) -> type[RaftNode]:
    class SpiedNode(RaftNode):
        def take_ready(self, now_ms: int) -> Ready:
            ready = super().take_ready(now_ms)
            setting.watch.ready_taken(self, ready)
            return ready

    return SpiedNode
