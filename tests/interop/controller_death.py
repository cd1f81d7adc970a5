"""How long the next topic takes when the leading controller is killed: ours or Kafka's, with brokers of Kafka's.

    python -m tests.interop.controller_death ours|kafka FOLDER [--kills 20]

Three controllers and one broker of Kafka's on loopback, with Kafka's default timeouts. The leader is killed (SIGKILL),
and a client asks the broker for a new topic at once; the time is that until the answer. The killed controller is
started again, and has caught up, before the next one is killed.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.interop.broker_death import KAFKAS, OURS
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION, find_release
from tests.interop.site import Layout, Site
from tests.support.cluster import KAFKAS_TIMES

CONTROLLERS, BROKER = (1, 2, 3), 11


def measure(site: Site, controllers: str, kills: int) -> list[float]:
    start = site.start_ours if controllers == OURS else site.start_kafka
    times = []
    for number in range(kills):
        leader_id = site.await_quorum(lambda status: status.leader_id in CONTROLLERS).leader_id
        site.kill(leader_id)
        killed_s = time.monotonic()
        site.create_topic(f"after-kill-{number}", BROKER, 1)
        times.append(time.monotonic() - killed_s)
        sys.stderr.write(
            f"kill {number + 1}: controller {leader_id}, {times[-1]:.2f} s until the next topic\n"
        )
        start(leader_id)
        site.await_quorum(lambda status: all(each.lag in {0, 1, 2} for each in status.voters))
    return times


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("controllers", choices=(OURS, KAFKAS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args(argv)
    arguments.folder.mkdir(parents=True)
    layout = Layout(
        controllers=CONTROLLERS,
        brokers=(BROKER,),
        release=".".join(VERSION.split(".")[:2]),
        settings=dict.fromkeys((*CONTROLLERS, BROKER), KAFKAS_TIMES),
    )
    with Site(Kafka(find_release(), arguments.folder), arguments.folder, layout) as site:
        site.format_with_kafka([BROKER])
        if arguments.controllers == OURS:
            site.format_with_ours(CONTROLLERS)
            site.start_ours(*CONTROLLERS)
        else:
            site.format_with_kafka(CONTROLLERS)
            site.start_kafka(*CONTROLLERS)
        site.start_kafka(BROKER)
        times = measure(site, arguments.controllers, arguments.kills)
    found = {
        "controllers": arguments.controllers,
        "brokers": VERSION,
        "kills": len(times),
        "median_s": round(median(times), 2),
        "longest_s": round(max(times), 2),
        "times_s": [round(each, 2) for each in times],
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
