"""The execution of a plan, and its cancellation."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kquorum.cli.clients.cluster_client import ClusterClient
from kquorum.cli.clients.live_brokers import live_brokers, not_there
from kquorum.cli.commands.log_dirs.moves import move_replicas
from kquorum.cli.commands.reassign.balance import Assignment, Place
from kquorum.cli.commands.reassign.plan_file import Target
from kquorum.cli.commands.reassign.progress import topics_of
from kquorum.cli.commands.reassign.reassign_client import (
    Ongoing,
    check_none_ongoing,
    find_ongoing,
    find_partitions,
    reassign,
)
from kquorum.cli.commands.reassign.throttles import find_throttles, remove_throttles, set_throttles
from kquorum.cli.failures import CliError


@dataclass(frozen=True, slots=True)
class Change:
    """A partition that a plan changes, or whose move ends (`after` is None)."""

    place: Place
    before: tuple[int, ...]
    after: tuple[int, ...] | None
    refusal: str | None = None


async def execute(
    client: ClusterClient,
    plan: Mapping[Place, Target],
    *,
    throttle: int | None,
    additional: bool,
    dry_run: bool,
    reason: str | None,
) -> list[Change]:
    """The partitions that the plan changes, with what was refused; nothing is asked for those that are as planned.
    Raises CliError where nothing was begun."""
    current = await _checked_places(client, plan)
    ongoing = await find_ongoing(client)
    if not additional:
        check_none_ongoing(ongoing, "let the plan's move beside them with --additional")
    live = await live_brokers(client)
    for target in plan.values():
        for broker in target.replicas:
            if broker not in live:
                raise not_there(broker, live)
    targets = {
        place: target.replicas
        for place, target in plan.items()
        if place in ongoing or target.replicas != current[place]
    }
    directories = _directories(plan)
    named = {place for places in directories.values() for place in places}
    # Where the plan names directories, the broker knows whether a replica is there already.
    changes = [
        Change(place, current[place], target.replicas)
        for place, target in plan.items()
        if place in targets or place in named
    ]
    if dry_run:
        return changes
    addresses = {each: live[each].address for each in directories}
    async with _no_throttles_left(client, throttle, targets):
        if throttle is not None and targets:
            await set_throttles(client, throttle, _moves(current, ongoing, targets))
        # Before the replicas come: a broker remembers where they are to be.
        refused_moves = await move_replicas(
            addresses, directories, client.remaining_ms, reason, may_come=True
        )
        if refused_moves:
            raise CliError(
                "no replica moves to another broker, for replicas cannot be in those directories: "
                f"{'; '.join(refused_moves[:5])} (`kquorum log-dirs list --replicas` shows what moves all the same)"
            )
        refused = await reassign(client, targets) if targets else {}
    if targets and len(refused) == len(targets):
        await _forget_throttles(client, throttle, targets)
    return [Change(each.place, each.before, each.after, refused.get(each.place)) for each in changes]


def _moves(
    current: Assignment, ongoing: Mapping[Place, Ongoing], targets: Mapping[Place, Sequence[int]]
) -> dict[Place, tuple[Sequence[int], Sequence[int]]]:
    """The replicas of before and after, of each target and of what moves in its topics already: the replicas that are
    on their way count as new ones."""
    topics = {topic for topic, _ in targets}
    moves: dict[Place, tuple[Sequence[int], Sequence[int]]] = {
        place: (_without(each.replicas, each.adding), _without(each.replicas, each.removing))
        for place, each in ongoing.items()
        if place[0] in topics
    }
    for place, after in targets.items():
        before = moves[place][0] if place in moves else current[place]
        moves[place] = (before, after)
    return moves


def _without(replicas: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others)


@asynccontextmanager
async def _no_throttles_left(
    client: ClusterClient, throttle: int | None, targets: Mapping[Place, Sequence[int]]
) -> AsyncIterator[None]:
    """A failure within removes what was set; where that fails too, its message says so."""
    try:
        yield
    except CliError as error:
        try:
            await _forget_throttles(client, throttle, targets)
        except CliError:
            raise CliError(
                f"{error}; throttles may be left: `kquorum reassign status --remove-throttles` removes them",
                status=error.status,
            ) from None
        raise


async def _forget_throttles(
    client: ClusterClient, throttle: int | None, targets: Mapping[Place, Sequence[int]]
) -> None:
    """After an attempt that began nothing; not while other partitions move."""
    if throttle is not None and targets and not await find_ongoing(client):
        await remove_throttles(client, await find_throttles(client, topics_of(targets)))


async def _checked_places(client: ClusterClient, plan: Mapping[Place, Target]) -> Assignment:
    """The present replicas. Raises CliError for a partition that is not there."""
    partitions = await find_partitions(client, topics_of(plan))
    if absent := [
        f"{topic}-{partition}" for topic, partition in plan if (topic, partition) not in partitions
    ]:
        raise CliError(f"there is no partition {', '.join(absent[:5])}: make another plan")
    return {place: partitions[place].replicas for place in plan}


def _directories(plan: Mapping[Place, Target]) -> dict[int, dict[Place, str]]:
    """Broker -> partition -> directory, where the plan names one."""
    found: dict[int, dict[Place, str]] = {}
    for place, target in plan.items():
        for broker, directory in zip(target.replicas, target.directories, strict=True):
            if directory is not None:
                found.setdefault(broker, {})[place] = directory
    return found


async def cancel(
    client: ClusterClient, plan: Mapping[Place, Target] | None, topics: Sequence[str] | None, *, dry_run: bool
) -> list[Change]:
    """End the moves of a plan, of topics, or all; the partitions have the replicas of before. Raises CliError."""
    ongoing = await find_ongoing(client)
    chosen = {
        place: each
        for place, each in ongoing.items()
        if (plan is None or place in plan) and (topics is None or place[0] in topics)
    }
    refused = {} if dry_run or not chosen else await reassign(client, dict.fromkeys(chosen))
    return [Change(place, each.replicas, None, refused.get(place)) for place, each in chosen.items()]
