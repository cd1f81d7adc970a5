"""What each kind of action of the schedule does to the world."""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import TYPE_CHECKING

from kquorum.raft.inputs import ResignRequested
from tests.simulation.hosts import Host
from tests.simulation.links import Weather
from tests.simulation.schedule import LEADER, Action

if TYPE_CHECKING:
    from tests.simulation.world import World


def carry_out(world: "World", action: Action) -> None:
    if world.is_faulty:
        world.tally[action.kind] += 1
        FAULTS[action.kind](world, action)


def target_of(world: "World", action: Action) -> Host:
    """Whom an action strikes; the n-th host stands in for a leader that is not there."""
    hosts = list(world.hosts.values())
    if action.who == LEADER:
        return world.leader() or hosts[action.at_ms % len(hosts)]
    return hosts[(action.who - 1) % len(hosts)]


# Processes


def _crash(world: "World", action: Action) -> None:
    world.crash_and_revive(target_of(world, action), action.for_ms)


def _power_cut(world: "World", action: Action) -> None:
    """Everything dies at once; what was not flushed anywhere is gone, and one host is slow to come back."""
    world.note("the power goes")
    late = target_of(world, action)
    for host in world.hosts.values():
        world.crash_and_revive(host, action.for_ms if host is late else 1 + host.random_source.randint(0, 50))


def _pause(world: "World", action: Action) -> None:
    host = target_of(world, action)
    host.paused_until_ms = world.now_ms + action.for_ms
    world.note("node %d pauses for %d ms", host.node_id, action.for_ms)


def _death_in_turn(world: "World", action: Action) -> None:
    host = target_of(world, action)
    host.dies_at_step, host.revives_after_ms = action.amount, action.for_ms


def _flush_error(world: "World", action: Action) -> None:
    host = target_of(world, action)
    host.flush_fails, host.revives_after_ms = True, action.for_ms


def _shutdown(world: "World", action: Action) -> None:
    world.shut_down(target_of(world, action), action.for_ms)


def _resignation(world: "World", action: Action) -> None:
    host = target_of(world, action)
    if host.node is not None:
        world.note("the controller of node %d gives up", host.node_id)
        world.deliver(host, host.life, ResignRequested(host.node.leader_epoch))


def _slow_disk(world: "World", action: Action) -> None:
    host = target_of(world, action)
    usual_ms = host.flush_ms_max
    host.flush_ms_max = action.amount
    world.note("flushes of node %d take up to %d ms", host.node_id, action.amount)

    def recover() -> None:
        if world.is_faulty:
            host.flush_ms_max = usual_ms

    world.at(action.for_ms, recover)


def _death_after_vote(world: "World", action: Action) -> None:
    world.traps.after_vote.append(action)


def _death_of_new_leader(world: "World", action: Action) -> None:
    world.traps.new_leader.append(action)


def _transfer(world: "World", action: Action) -> None:
    world.operator.transfer(target_of(world, action))


def _lose_state(world: "World", action: Action) -> None:
    world.operator.lose_state(target_of(world, action), action.for_ms)


def _add_voter(world: "World", action: Action) -> None:
    """Any replica outside the voters that could be one; the action's own target if it can."""
    hosts = [host for host in world.hosts.values() if host.can_be_voter]
    outside = [host for host in hosts if host.node is not None and not host.node.replica.is_voter]
    if outside:
        world.operator.add(outside[action.who % len(outside)])


def _remove_voter(world: "World", action: Action) -> None:
    world.operator.remove(target_of(world, action))


def _move(world: "World", action: Action) -> None:
    world.operator.move(target_of(world, action), action.for_ms)


def _replace_disk(world: "World", action: Action) -> None:
    world.operator.replace_disk(target_of(world, action), action.for_ms)


def _upgrade(world: "World", action: Action) -> None:
    leader = world.leader()
    if leader is not None:
        world.operator.upgrade(leader)


def _burst(world: "World", action: Action) -> None:
    world.clients.burst(target_of(world, action), action.amount)


# Snapshots


def _snapshot(world: "World", action: Action) -> None:
    world.snapshots.take(target_of(world, action))


def _retention(world: "World", action: Action) -> None:
    """The log is forgotten up to a snapshot, and older snapshots with it, also those being fetched."""
    world.snapshots.turn_and_advance(target_of(world, action))


def _bad_download(world: "World", action: Action) -> None:
    target_of(world, action).spoils_download = True


def _death_over_snapshot(world: "World", action: Action) -> None:
    world.traps.snapshot_steps.append(action)


# Failing disks


def _full_disk(world: "World", action: Action) -> None:
    world.failing_disks.fill(target_of(world, action), action.for_ms)


def _damaged_disk(world: "World", action: Action) -> None:
    world.failing_disks.damage(target_of(world, action), action.for_ms, action.amount)


# Links


def _cut_off(world: "World", action: Action) -> None:
    """One node alone: both ways (0), from it (1) or to it (2)."""
    node_id = target_of(world, action).node_id
    others = [other for other in world.hosts if other != node_id]
    links = []
    if action.amount != 2:
        links += [(node_id, other) for other in others]
    if action.amount != 1:
        links += [(other, node_id) for other in others]
    world.note(
        "node %d is cut off%s", node_id, ("", ", what it sends", ", what is sent to it")[action.amount]
    )
    world.network.cut(links, action.for_ms)


def _split(world: "World", action: Action) -> None:
    """Two sides that do not hear each other; the bits of `amount` say who is on the one."""
    side = {node_id for position, node_id in enumerate(world.hosts) if action.amount >> (position % 5) & 1}
    world.note("split: %s from the rest", sorted(side))
    world.network.cut(_between(side, world.hosts.keys() - side), action.for_ms)


def _cut_link(world: "World", action: Action) -> None:
    """One link, one way or (even amounts) both."""
    source = target_of(world, action).node_id
    ids = [node_id for node_id in world.hosts if node_id != source]
    if not ids:
        return
    target = ids[action.amount % len(ids)]
    world.note("the link from %d to %d is cut", source, target)
    links = [(source, target)] if action.amount % 2 else [(source, target), (target, source)]
    world.network.cut(links, action.for_ms)


def _bridge(world: "World", action: Action) -> None:
    """Two halves that hear each other only through one node (KIP-996's and Cloudflare's kind of fault)."""
    bridge = target_of(world, action).node_id
    others = [node_id for node_id in world.hosts if node_id != bridge]
    half = set(others[: (len(others) + 1) // 2])
    world.note(
        "%s and %s hear each other through node %d only", sorted(half), sorted({*others} - half), bridge
    )
    world.network.cut(_between(half, set(others) - half), action.for_ms)


def _ring(world: "World", action: Action) -> None:
    """Each node hears its two neighbours only."""
    ids = list(world.hosts)
    neighbours = {frozenset((ids[position - 1], ids[position])) for position in range(len(ids))}
    links = [pair for pair in combinations(ids, 2) if frozenset(pair) not in neighbours]
    world.note("the nodes form a ring: %s", ids)
    world.network.cut([*links, *((b, a) for a, b in links)], action.for_ms)


def _partial_cut(world: "World", action: Action) -> None:
    """Links between voters are cut as the bits of `amount` say, but the leader keeps those to a majority: as long as
    that lasts it must go on leading (KIP-996; Kafka's StableLeadership)."""
    leader = world.leader()
    if leader is None or leader.node is None or not world.checkers.is_settled(leader):
        return
    voters = leader.node.voters
    spared = {leader.node_id, *voters.others(leader.node_id)[: voters.majority - 1]}
    pairs = [
        pair
        for pair in combinations(voters.ids, 2)
        if leader.node_id not in pair or not spared.issuperset(pair)
    ]
    cut = [pair for position, pair in enumerate(pairs) if action.amount >> (position % 10) & 1]
    world.note("links cut: %s; node %d must go on leading", cut, leader.node_id)
    world.network.cut([*cut, *((b, a) for a, b in cut)], action.for_ms)
    world.checkers.expect_stable(leader, world.now_ms + action.for_ms)


def _between(one: Iterable[int], other: Iterable[int]) -> list[tuple[int, int]]:
    pairs = [(a, b) for a in sorted(one) for b in sorted(other)]
    return [*pairs, *((b, a) for a, b in pairs)]


# Weather


def _loss(world: "World", action: Action) -> None:
    usual = world.options.delay_ms_max
    _set_weather(world, action, Weather(usual, loss=action.amount / 100), f"{action.amount}% are lost")


def _duplicates(world: "World", action: Action) -> None:
    usual = world.options.delay_ms_max
    weather = Weather(usual, duplicates=action.amount / 100)
    _set_weather(world, action, weather, f"{action.amount}% arrive twice")


def _slow_network(world: "World", action: Action) -> None:
    """Delays in percent of a fetch timeout: enough for timeouts of healthy nodes."""
    delay_ms = max(2, action.amount * world.options.fetch_timeout_ms // 100)
    _set_weather(world, action, Weather(delay_ms), f"up to {delay_ms} ms under way")


def _set_weather(world: "World", action: Action, weather: Weather, description: str) -> None:
    world.note("messages for %d ms: %s", action.for_ms, description)
    world.network.weather = weather

    def clear_up() -> None:
        if world.is_faulty and world.network.weather is weather:
            world.note("messages arrive as usual")
            world.network.weather = Weather(world.options.delay_ms_max)

    world.at(action.for_ms, clear_up)


FAULTS: dict[str, Callable[["World", Action], None]] = {
    "crash": _crash,
    "power cut": _power_cut,
    "pause": _pause,
    "death in turn": _death_in_turn,
    "flush error": _flush_error,
    "shutdown": _shutdown,
    "resignation": _resignation,
    "slow disk": _slow_disk,
    "death after vote": _death_after_vote,
    "death of new leader": _death_of_new_leader,
    "burst": _burst,
    "transfer": _transfer,
    "lose state": _lose_state,
    "add voter": _add_voter,
    "remove voter": _remove_voter,
    "move": _move,
    "replace disk": _replace_disk,
    "upgrade": _upgrade,
    "snapshot": _snapshot,
    "retention": _retention,
    "bad download": _bad_download,
    "death over snapshot": _death_over_snapshot,
    "full disk": _full_disk,
    "damaged disk": _damaged_disk,
    "cut off": _cut_off,
    "split": _split,
    "cut link": _cut_link,
    "bridge": _bridge,
    "ring": _ring,
    "partial cut": _partial_cut,
    "loss": _loss,
    "duplicates": _duplicates,
    "slow network": _slow_network,
}
