"""Faults of disks and clocks: full, slow, failing, without power, changed, replaced, and wrong about the time.

Most need the shim of tests.jepsen.disk in the node's process; where it cannot be had they say NotNow.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kquorum.cli.processes import NodeFailed
from tests.jepsen.disk.damage import NothingToFlip, flip_bit, wipe
from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.jepsen.faults.fault import Fault, NotNow, Scene, Value
from tests.jepsen.faults.process_faults import start_again
from tests.jepsen.faults.quorum_view import NoLeader

Choice = Callable[[Scene], Sequence[int]]
Ail = Callable[[Scene, FaultyDisk], Value]

SLOW_FSYNC_MS = 600
CLOCK_JUMPS_MS = (-86_400_000, -60_000, -2_000, 2_000, 60_000, 86_400_000)


def disk_of(scene: Scene, node_id: int) -> FaultyDisk:
    """Raises NotNow."""
    disk = scene.cluster.disks.get(node_id)
    if disk is None:
        raise NotNow(scene.cluster.no_disks)
    return disk


class Ailing:
    """The disks (or clocks) of some controllers are not as they should be until the heal. A node whose disk fails may
    end by itself, and is started again then; with other ailments it may be killed by other faults meanwhile."""

    def __init__(self, name: str, choose: Choice, ail: Ail, *, may_end: bool = False) -> None:
        self.name = name
        self._choose = choose
        self._ail = ail
        self._may_end = may_end
        self._nodes: list[int] = []
        self._before: dict[int, dict[str, int]] = {}

    def begin(self, scene: Scene) -> Value:
        nodes = list(self._choose(scene))
        disks = {node_id: disk_of(scene, node_id) for node_id in nodes}
        if self._may_end:
            scene.claim(self.name, nodes)
        value: dict[str, Any] = {"nodes": nodes}
        for node_id, disk in disks.items():
            self._nodes.append(node_id)
            self._before[node_id] = disk.counters()
            if self._may_end:
                scene.cluster.allow_end(node_id)
            value |= self._ail(scene, disk)
        return value

    def end(self, scene: Scene) -> Value | None:
        nodes, self._nodes = self._nodes, []
        ended = [node_id for node_id in nodes if self._may_end and not scene.cluster.is_running(node_id)]
        felt: dict[str, int] = {}
        for node_id in nodes:
            disk = disk_of(scene, node_id)
            for name, count in disk.counters().items():
                if rise := count - self._before[node_id].get(name, 0):
                    felt[name] = felt.get(name, 0) + rise
            disk.heal()
        start_again(scene, ended)
        # The leave is its own: another ailment of the same node may have given one that lasts.
        for node_id in nodes if self._may_end else ():
            scene.cluster.allow_end(node_id, allowed=False)
        return {"ended": ended, "felt": felt} if nodes else None


class PowerCut:
    """Machines go down at one stroke: processes are killed, and what was not flushed is gone, or torn."""

    def __init__(self, name: str, choose: Choice, *, tear: bool) -> None:
        self.name = name
        self._choose = choose
        self._tear = tear
        self._down: list[int] = []

    def begin(self, scene: Scene) -> Value:
        nodes = list(self._choose(scene))
        disks = {node_id: disk_of(scene, node_id) for node_id in nodes}
        scene.claim(self.name, nodes)
        for node_id in nodes:
            self._down.append(node_id)
            scene.cluster.kill(node_id)
        lost = {
            str(node_id): disk.cut_power(scene.random_source, self._tear) for node_id, disk in disks.items()
        }
        return {
            "nodes": nodes,
            "lost": {node_id: what for node_id, what in lost.items() if any(what.values())},
        }

    def end(self, scene: Scene) -> Value | None:
        down, self._down = self._down, []
        for node_id in down:
            # A node with a slow disk starts seconds after the others, which elect a leader without it. Only the first
            # election after the cut shows whether a node leads that lost its tail.
            disk_of(scene, node_id).heal()
        start_again(scene, down)
        return {"started": down} if down else None


class BitFlip:
    """One bit of a follower's log changes while the node is down."""

    name = "bit-flip"

    def __init__(self) -> None:
        self._down: list[int] = []

    def begin(self, scene: Scene) -> Value:
        node_id = scene.any_unclaimed(set(scene.members.controllers) - _leaders(scene))
        scene.ration(node_id)
        scene.claim(self.name, [node_id])
        self._down = [node_id]
        scene.cluster.kill(node_id)
        try:
            flip = flip_bit(scene.cluster.data_folder(node_id), scene.random_source)
        except NothingToFlip as error:
            start_again(scene, self._down)
            raise NotNow(str(error)) from error
        return {"node": node_id, **flip._asdict()}

    def end(self, scene: Scene) -> Value | None:
        down, self._down = self._down, []
        start_again(scene, down)
        return {"started": down} if down else None


def _leaders(scene: Scene) -> set[int]:
    try:
        return {scene.quorum.leader().leader_id}
    except NoLeader:
        return set()


class WipedDisk:
    """A controller comes back with an empty disk, formatted as the documents say for a disk that was replaced."""

    name = "wiped-disk"

    def __init__(self) -> None:
        self._down: list[int] = []

    def begin(self, scene: Scene) -> Value:
        node_id = scene.any_unclaimed(scene.members.controllers)
        scene.ration(node_id)
        scene.claim(self.name, [node_id])
        self._down = [node_id]
        scene.cluster.kill(node_id)
        wipe(scene.cluster.data_folder(node_id))
        if node_id in scene.cluster.disks:
            scene.cluster.disks[node_id].forget()
        return {"node": node_id}

    def end(self, scene: Scene) -> Value | None:
        down, self._down = self._down, []
        for node_id in down:
            if scene.members.spares:
                return self._end_dynamic(scene, node_id)
            scene.cluster.format(node_id, "--replaced-disk")
            start_again(scene, down)
        return {"started": down} if down else None

    def _end_dynamic(self, scene: Scene, node_id: int) -> Value:
        """With another directory it is another voter: the old one is taken out, the new one put in. Others change the
        voters meanwhile, so either may have happened already, or be refused for now."""
        cluster, config = scene.cluster, str(scene.cluster.config_path(node_id))
        told = [_try(cluster.kquorum, "quorum", "remove-voter", str(node_id), "-c", config)]
        cluster.format(node_id, "--no-initial-controllers")
        start_again(scene, [node_id])
        told.append(_try(cluster.kquorum, "quorum", "add-voter", str(node_id), "-c", config, "--wait"))
        return {"started": [node_id], "told": told}


def _try(command: Callable[..., str], *words: str) -> str:
    try:
        command(*words)
    except NodeFailed as error:
        return str(error).splitlines()[-1]
    return f"{words[1]}: done"


def _slow(scene: Scene, disk: FaultyDisk) -> Value:
    disk.slow_fsync(SLOW_FSYNC_MS)
    return {"fsync_ms": SLOW_FSYNC_MS}


def _full(scene: Scene, disk: FaultyDisk) -> Value:
    free_bytes = scene.random_source.choice([0, 700, 20_000])
    disk.fill(free_bytes)
    return {"free_bytes": free_bytes}


def _fail_fsync(scene: Scene, disk: FaultyDisk) -> Value:
    count = scene.random_source.choice([1, None])
    disk.fail_fsync(count)
    return {"failing_fsyncs": count}


def _fail_writes(scene: Scene, disk: FaultyDisk) -> Value:
    disk.fail_writes(1)
    return {"failing_writes": 1}


def _jump(scene: Scene, disk: FaultyDisk) -> Value:
    jump_ms = scene.random_source.choice(CLOCK_JUMPS_MS)
    disk.jump_clock(jump_ms)
    return {"jump_ms": jump_ms}


def _one(scene: Scene) -> list[int]:
    return [scene.any_unclaimed(scene.members.controllers)]


def _leader(scene: Scene) -> list[int]:
    return [scene.leader_unclaimed()]


def _some(scene: Scene) -> list[int]:
    """From one controller to all of them."""
    free = scene.unclaimed(scene.members.controllers)
    if not free:
        raise NotNow("every controller is taken by another fault")
    return sorted(scene.random_source.sample(free, scene.random_source.randint(1, len(free))))


def _any_nodes(scene: Scene) -> list[int]:
    free = scene.unclaimed(scene.members.all)
    if not free:
        raise NotNow("every node is taken by another fault")
    return sorted(scene.random_source.sample(free, scene.random_source.randint(1, len(free))))


def _every_node(scene: Scene) -> list[int]:
    return list(scene.members.all)


KINDS: tuple[tuple[str, Callable[[], Fault]], ...] = (
    ("some controllers' disks are full", lambda: Ailing("disk-full", _some, _full)),
    (f"some controllers' flushes take {SLOW_FSYNC_MS} ms longer", lambda: Ailing("slow-fsync", _some, _slow)),
    (
        f"the leader's flushes take {SLOW_FSYNC_MS} ms longer",
        lambda: Ailing("slow-fsync-leader", _leader, _slow),
    ),
    (
        "a controller's flush fails (EIO), once or for good",
        lambda: Ailing("fsync-error", _one, _fail_fsync, may_end=True),
    ),
    (
        "a controller's write fails (EIO)",
        lambda: Ailing("write-error", _one, _fail_writes, may_end=True),
    ),
    (
        "some controllers lose their power, and what was not flushed is torn",
        lambda: PowerCut("torn-write", _some, tear=True),
    ),
    (
        "every node loses its power, and what was not flushed is gone",
        lambda: PowerCut("power-cut", _every_node, tear=False),
    ),
    ("a bit flips in a follower's log", BitFlip),
    ("a controller comes back with an empty disk", WipedDisk),
    ("the wall clocks of some nodes jump", lambda: Ailing("clock-jump", _any_nodes, _jump)),
)

NEED_SHIM = frozenset(
    {
        "disk-full",
        "slow-fsync",
        "slow-fsync-leader",
        "fsync-error",
        "write-error",
        "torn-write",
        "power-cut",
        "clock-jump",
    }
)
# After these a log may lawfully have a hole until it has been fetched again.
TAKE_RECORDS = frozenset({"bit-flip", "wiped-disk", "torn-write", "power-cut"})
FAIL_DISKS = frozenset({"fsync-error", "write-error"})
