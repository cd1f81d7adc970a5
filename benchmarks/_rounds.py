"""The options and rounds of the benchmarks that measure brokers of ours beside brokers of Kafka's, side by side."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks._report import hardware, print_result
from benchmarks.broker_peers import JVM, SIDES, Figures, Side, rows, sides_of
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION, Unavailable, find_release


def parser_of(name: str, words: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=words,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout of this project, as one more side")
    parser.add_argument(
        "--from-sources", action="store_true", help="our sources, not compiled, as one more side"
    )
    parser.add_argument("--folder", type=Path, help="kept; a temporary one without it")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = parser.parse_args()
    options.sides = options.sides.split(",")
    if not set(options.sides) <= set(SIDES):
        parser.error(f"--sides: there are {', '.join(SIDES)}")
    return options


def run_rounds(
    name: str,
    options: argparse.Namespace,
    settings: Mapping[str, object],
    measure: Callable[[Side, Kafka, Path], Figures],
) -> None:
    """Print the medians of all sides and their ratios; each round as it ends on standard error."""
    machine = hardware()
    try:
        release = find_release()
    except Unavailable as error:
        raise SystemExit(f"the cluster is described by Kafka's release: {error}") from None
    sides = sides_of(options)
    results: dict[str, list[Figures]] = {side.name: [] for side in sides}
    with tempfile.TemporaryDirectory(prefix=f"kquorum-{name}-") as temporary:
        base = options.folder or Path(temporary)
        for number in range(options.times):
            for side in sides[::-1] if number % 2 else sides:
                folder = base / f"{number}-{side.name}"
                folder.mkdir(parents=True)
                figures = measure(side, Kafka(release, folder, JVM), folder)
                results[side.name].append(figures)
                text = ", ".join(f"{each} {value:.2f}" for each, value in figures.items())
                print(f"round {number + 1}, {side.name}: {text}", file=sys.stderr, flush=True)
    print_result(
        name,
        machine,
        {**settings, "times": options.times, "kafka": VERSION},
        {name: rows(results)},
        as_json=options.json,
    )
