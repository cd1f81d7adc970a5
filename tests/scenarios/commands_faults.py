"""Commands that inject faults: links, processes, disks and random draws."""

from kquorum.raft.inputs import LogFlushed, WritesPaused
from tests.scenarios.arguments import Arguments
from tests.scenarios.cluster import Cluster
from tests.scenarios.errors import ScenarioError


def cut(cluster: Cluster, arguments: Arguments) -> None:
    """`cut 1->3`: nothing passes that way any more; `cut 1-3` cuts both ways."""
    for word in arguments.rest():
        one_way = "->" in word
        source, _, target = word.partition("->" if one_way else "-")
        links = [(int(source), int(target))]
        cluster.network.cut_links(links if one_way else [*links, (int(target), int(source))])


def partition(cluster: Cluster, arguments: Arguments) -> None:
    """`partition 1|2,3`: no message passes between the groups; nodes in none are alone."""
    groups = [set(map(int, group.split(","))) for group in arguments.word("the groups").split("|")]
    sides = {node_id: index for index, group in enumerate(groups) for node_id in group}
    cluster.network.cut_links(
        (source, target)
        for source in cluster.hosts
        for target in cluster.hosts
        if source != target and sides.get(source, -source) != sides.get(target, -target)
    )


def heal(cluster: Cluster, arguments: Arguments) -> None:
    """`heal`: all links carry again."""
    cluster.network.heal()


def crash(cluster: Cluster, arguments: Arguments) -> None:
    """`crash 2`: the process ends, and what it had not flushed is lost."""
    for node_id in arguments.numbers("the nodes"):
        host = cluster.host(node_id)
        cluster.live(node_id)
        lost = host.disk.crash()
        cluster.stop(host)
        cluster.transcript.say(
            f"{node_id} crashes" + (f"; {lost} unflushed records are lost" if lost else "")
        )


def start(cluster: Cluster, arguments: Arguments) -> None:
    """`start`, `start 1,2`: processes begin, all that do not run without a list."""
    wanted = arguments.numbers("the nodes") if arguments.words else list(cluster.hosts)
    for node_id in wanted:
        host = cluster.host(node_id)
        if host.node is not None and arguments.words:
            raise ScenarioError(f"node {node_id} runs already")
        if host.node is None:
            cluster.start(host)


def restart(cluster: Cluster, arguments: Arguments) -> None:
    """`restart 2`: a crash and a start."""
    for node_id in arguments.numbers("the nodes"):
        host = cluster.host(node_id)
        if host.node is not None:
            host.disk.crash()
        cluster.stop(host)
        cluster.start(host)


def pause(cluster: Cluster, arguments: Arguments) -> None:
    """`pause 1`: the process stands still: no timer fires, and messages wait for it."""
    node_id = arguments.number("the node")
    cluster.live(node_id)
    cluster.host(node_id).is_paused = True


def resume(cluster: Cluster, arguments: Arguments) -> None:
    """`resume 1`: it goes on; `deliver` gives it what waited, `advance 0` its timers that are due."""
    cluster.host(arguments.number("the node")).is_paused = False


def disk(cluster: Cluster, arguments: Arguments) -> None:
    """`disk 2 slow`: it flushes only on `flush 2`; `disk 2 fast`: at once, as in the beginning."""
    node_id = arguments.number("the node")
    speed = arguments.word("slow or fast")
    if speed not in ("slow", "fast"):
        raise ScenarioError(f"a disk is slow or fast, not '{speed}'")
    cluster.host(node_id).flushes_itself = speed == "fast"


def space(cluster: Cluster, arguments: Arguments) -> None:
    """`space 2 full`: its disk takes no more records; `space 2 free`: it does again."""
    node_id = arguments.number("the node")
    state = arguments.word("full or free")
    if state not in ("full", "free"):
        raise ScenarioError(f"a disk is full or free, not '{state}'")
    cluster.live(node_id)
    cluster.step(cluster.host(node_id), WritesPaused(state == "full"))


def flush(cluster: Cluster, arguments: Arguments) -> None:
    """`flush 2`: all that it wrote is durable now; `flush 2 upto=3` what ends below 3 only.

    `began=before-cut`: one that began before the last cut of the log ends now; it covers nothing written since.
    """
    host = cluster.host(arguments.number("the node"))
    upto = arguments.maybe("upto")
    if arguments.option("began", "now") == "before-cut":
        cluster.step(host, LogFlushed(host.disk.end_offset, host.truncations - 1))
        return
    host.disk.flush(None if upto is None else int(upto))
    cluster.transcript.event(f"{host.node_id} flushed up to {host.disk.flushed_offset}")
    cluster.step(host, LogFlushed(host.disk.flushed_offset, host.truncations))


def draw(cluster: Cluster, arguments: Arguments) -> None:
    """`draw 2 low|high|N`: what node 2 draws from now on; N is so much above the lowest."""
    host = cluster.host(arguments.number("the node"))
    host.random_source.choice = arguments.word("low, high or a number")
