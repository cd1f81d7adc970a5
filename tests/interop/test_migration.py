"""Kafka's controllers are exchanged for ours, one by one as `kquorum migrate` says, and back, while clients write."""

import json
from pathlib import Path

import pytest

from kquorum.cli.main import run
from tests.interop.kafka_process import Kafka
from tests.interop.site import Layout, Site
from tests.support.steady_clients import COPY, PARTITIONS, TOPIC, Copier, Writer, check_copies

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CONTROLLERS, BROKER = (1, 2, 3), 101
RECORDS_BETWEEN = 50
SINGLE = {"offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1}


def migrate(
    site: Site, capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0
) -> dict[str, object]:
    capsys.readouterr()
    found = run(["migrate", *arguments, "--json"])
    printed = capsys.readouterr()
    assert found == status, f"{arguments}: {printed.out}{printed.err}\n{site.tails()}"
    answer: dict[str, object] = json.loads(printed.out or printed.err)
    return answer


def exchange(site: Site, capsys: pytest.CaptureFixture[str], target: str, node_id: int) -> dict[str, object]:
    """One controller, by the three steps that an operator takes on its machine."""
    path = str(site.nodes[node_id].kafka_path)
    step = ("step", "--to", target, "-c", path)
    assert migrate(site, capsys, *step, "--wait")["phase"] == "before"
    site.stop(node_id)
    stopped = migrate(site, capsys, *step)
    assert stopped["phase"] == "stopped"
    if target == "kquorum":
        site.start_ours(node_id)
    else:
        site.start_kafka(node_id)
    done = migrate(site, capsys, *step, "--wait", "--timeout-ms", "90000")
    assert done["phase"] == "after"
    assert (done["offset"], done["state_hash"]) == (stopped["offset"], stopped["state_hash"])
    return done


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_a_cluster_of_kafkas_goes_to_our_controllers_and_back(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str], is_dynamic: bool
) -> None:
    layout = Layout(
        controllers=CONTROLLERS, brokers=(BROKER,), is_dynamic=is_dynamic, settings={BROKER: SINGLE}
    )
    with Site(kafka, tmp_path, layout) as site:
        site.format_with_kafka()
        site.start_kafka(*CONTROLLERS, BROKER)
        if is_dynamic:
            for node_id in CONTROLLERS[1:]:
                site.add_voter(node_id)
        for topic in (TOPIC, COPY):
            site.create_topic(topic, BROKER, PARTITIONS)
        servers = site.nodes[BROKER].address
        with Writer(servers) as writer, Copier(servers) as copier:
            writer.wait_for_more(RECORDS_BETWEEN)
            for target in ("kquorum", "kafka"):
                moved = 0
                while True:
                    path = str(site.nodes[CONTROLLERS[0]].kafka_path)
                    plan = migrate(site, capsys, "plan", "--to", target, "-c", path)
                    if plan["next"] is None:
                        break
                    node_id = plan["next"]
                    assert isinstance(node_id, int)
                    exchange(site, capsys, target, node_id)
                    moved += 1
                    site.create_topic(f"{target}-{moved}", BROKER)
                    writer.wait_for_more(RECORDS_BETWEEN)
                assert moved == len(CONTROLLERS)
            copier.wait_for_more(1)
        check_copies(servers, writer, copier)
        made = {f"{target}-{number}" for target in ("kquorum", "kafka") for number in (1, 2, 3)}
        assert made <= site.topics(BROKER)
