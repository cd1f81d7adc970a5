"""Steps per second of the consensus core, and what a committed batch costs in it, without disk and network.

    python -m benchmarks.core_steps [--fast] [--json] [--repeats 7] [--rounds 1000] [--profile]

A step is one input and the `take_ready` after it, as the driver does where nothing else comes in the same turn. Two
limits are measured in the same run, turn and turn about with the core: "bare" passes the same messages between replicas
that decide nothing (what Python asks for building and passing them), "bytes" builds the same batch and checks it once
for each follower (encoding and CRC-32C). `times the limit` is the core's figure over its limit: bare for steps, bare
plus bytes for committed batches. All figures are processor time of one process, each the best of several repeats.
"""

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks._core_quorum import BareQuorum, CoreQuorum
from benchmarks._core_sides import VALUE, FollowerAlone, LeaderAlone, Size
from benchmarks._report import hardware, print_result
from kquorum.wire.record_batch import check_batch, write_batch

RECORDS_PER_BATCH = (1, 10, 100)
VOTERS = (3, 5)
FAST_ROUNDS, FAST_REPEATS = 200, 3

Timed = Callable[[], float]


def best(actions: Sequence[Timed], size: Size) -> list[float]:
    """Microseconds a round of each action in its best repeat; they take turns, so that all meet the same machine."""
    fastest = [float("inf")] * len(actions)
    for _ in range(size.repeats):
        for number, action in enumerate(actions):
            fastest[number] = min(fastest[number], action())
    return [seconds / size.rounds * 1e6 for seconds in fastest]


def step_rows(size: Size) -> list[dict[str, object]]:
    sides: list[tuple[str, LeaderAlone | FollowerAlone]] = [
        (f"leader of {voters}", LeaderAlone(voters, size)) for voters in VOTERS
    ]
    sides.append(("follower", FollowerAlone(size)))
    return [_step_row(name, side, size) for name, side in sides]


def _step_row(name: str, side: LeaderAlone | FollowerAlone, size: Size) -> dict[str, object]:
    core_us, bare_us = best((side.run_core, side.run_bare), size)
    return {
        "replica": name,
        "steps_per_s": round(side.steps_per_round / core_us * 1e6),
        "us_per_step": core_us / side.steps_per_round,
        "bare_us_per_step": bare_us / side.steps_per_round,
        "times_the_limit": core_us / bare_us,
    }


def timed(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def bytes_alone(rounds: int, values: Sequence[bytes], followers: int) -> None:
    """The work that cannot be avoided: the leader builds each batch, each follower checks it."""
    records = [(None, value) for value in values]
    for offset in range(rounds):
        data = write_batch(base_offset=offset, leader_epoch=1, timestamp_ms=1, records=records)
        for _ in range(followers):
            check_batch(data)


def commit_rows(size: Size) -> list[dict[str, object]]:
    return [_commit_row(voters, records, size) for voters in VOTERS for records in RECORDS_PER_BATCH]


def _commit_row(voters: int, records: int, size: Size) -> dict[str, object]:
    values = (VALUE,) * records
    quorum, bare = CoreQuorum(voters), BareQuorum(voters, values)
    core_us, bare_us, bytes_us = best(
        (
            partial(timed, partial(quorum.rounds, size.rounds, values)),
            partial(timed, partial(bare.rounds, size.rounds, values)),
            partial(timed, partial(bytes_alone, size.rounds, values, voters - 1)),
        ),
        size,
    )
    return {
        "voters": voters,
        "records": records,
        "us_per_batch": core_us,
        "us_per_record": core_us / records,
        "bytes_us": bytes_us,
        "bare_us": bare_us,
        "times_the_limit": core_us / (bytes_us + bare_us),
    }


# Where the time goes


def profile_rows(size: Size, lines: int = 20) -> list[dict[str, object]]:
    """The functions of raft/ and wire/ that take most by themselves, over rounds of one record among three voters."""
    quorum = CoreQuorum(VOTERS[0])
    profiler = cProfile.Profile()
    profiler.runcall(quorum.rounds, size.rounds, (VALUE,))
    stats = pstats.Stats(profiler)
    total = float(stats.total_tt)  # type: ignore[attr-defined]
    found = []
    for (path, line, name), (_, calls, own, with_callees, _) in stats.stats.items():  # type: ignore[attr-defined]
        place = "/".join(path.rsplit("/", 2)[-2:]) + f":{line}" if line else path
        found.append((own, place, name, calls, with_callees))
    return [
        {
            "function": f"{place} {name}",
            "calls_per_batch": calls / size.rounds,
            "own_percent": own / total * 100,
            "percent_with_callees": with_callees / total * 100,
        }
        for own, place, name, calls, with_callees in sorted(found, reverse=True)[:lines]
    ]


def measure(size: Size, *, with_profile: bool = False) -> dict[str, list[dict[str, object]]]:
    """Rows by table title."""
    tables = {
        "steps of one replica, one record a batch": step_rows(size),
        "a batch committed at all replicas, without disk and network": commit_rows(size),
    }
    if with_profile:
        tables["profile (the profiler's own cost included)"] = profile_rows(size)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000, help="batches of one measurement")
    parser.add_argument("--repeats", type=int, default=7, help="measurements; the best counts")
    parser.add_argument("--fast", action="store_true", help=f"{FAST_ROUNDS} rounds, {FAST_REPEATS} repeats")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--profile", action="store_true", help="also show which functions take the time")
    options = parser.parse_args()
    size = Size(FAST_ROUNDS, FAST_REPEATS) if options.fast else Size(options.rounds, options.repeats)
    settings = {"rounds": size.rounds, "repeats": size.repeats}
    machine = hardware()
    tables = measure(size, with_profile=options.profile)
    print_result("core_steps", machine, settings, tables, as_json=options.json)


if __name__ == "__main__":
    main()
