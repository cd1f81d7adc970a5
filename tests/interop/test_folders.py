"""A data folder changes hands: what Kafka's controller wrote ours goes on with, and the other way round.

The first owner is killed, so that the second finds what a crash leaves (such as indexes with room for more entries).
"""

from pathlib import Path

import pytest

from cli.processes import wait_until
from tests.interop.dumps import assert_same_dumps, check_indexes_with_kafka
from tests.interop.kafka_process import Kafka
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = pytest.mark.interop

CONTROLLER, KAFKA_BROKER, OUR_BROKER = 1, 101, 102


def layout(quorum: str) -> Layout:
    return Layout(
        controllers=(CONTROLLER,), brokers=(KAFKA_BROKER, OUR_BROKER), is_dynamic=quorum == "dynamic"
    )


def kafkas_turn(site: Site, made: set[str]) -> None:
    """Controller and broker are Kafka's, and make one more topic."""
    site.start_kafka(CONTROLLER, KAFKA_BROKER)
    _turn(site, made, KAFKA_BROKER)


def our_turn(site: Site, made: set[str]) -> None:
    site.start_ours(CONTROLLER, OUR_BROKER)
    _turn(site, made, OUR_BROKER)


def _turn(site: Site, made: set[str], broker_id: int) -> None:
    name = f"topic-{len(made)}"
    site.create_topic(name, broker_id)
    made.add(name)
    assert wait_until(lambda: site.topics(broker_id) == made, WAIT_S), site.tails()
    assert site.await_quorum(lambda status: status.leader_id == CONTROLLER).leader_epoch >= len(made)


def check_log(kafka: Kafka, site: Site, *, epochs: int, topics: set[str]) -> None:
    """Both programs read the same, from the first offset to the last without a gap; every epoch has its beginning."""
    node = site.nodes[CONTROLLER]
    dumps = assert_same_dumps(
        kafka, [*node.segments(), *node.checkpoints(), node.data / "bootstrap.checkpoint"]
    )
    records = [record for path in node.segments() for record in dumps[path].records]
    assert [record.offset for record in records] == list(range(len(records)))
    begun = [record.leader_epoch for record in records if record.type == "leaderchange"]
    assert len(begun) == epochs
    assert begun == sorted(set(begun))
    named = {record.payload["name"] for record in records if record.type == "topicrecord"}
    assert named == topics
    check_indexes_with_kafka(kafka, *node.metadata.glob("*.index"), *node.metadata.glob("*.timeindex"))


@pytest.mark.parametrize("quorum", ["static", pytest.param("dynamic", marks=pytest.mark.slow)])
def test_a_folder_of_kafkas_goes_on_with_ours(kafka: Kafka, tmp_path: Path, quorum: str) -> None:
    made: set[str] = set()
    with Site(kafka, tmp_path, layout(quorum)) as site:
        site.format_with_kafka()
        kafkas_turn(site, made)
        site.kill(KAFKA_BROKER, CONTROLLER)
        our_turn(site, made)
        site.stop(OUR_BROKER, CONTROLLER)
        check_log(kafka, site, epochs=2, topics=made)


@pytest.mark.parametrize("quorum", ["dynamic", pytest.param("static", marks=pytest.mark.slow)])
def test_a_folder_of_ours_goes_on_with_kafka_and_back(kafka: Kafka, tmp_path: Path, quorum: str) -> None:
    made: set[str] = set()
    with Site(kafka, tmp_path, layout(quorum)) as site:
        site.format_with_ours()
        our_turn(site, made)
        site.kill(OUR_BROKER, CONTROLLER)
        kafkas_turn(site, made)
        site.stop(KAFKA_BROKER, CONTROLLER)
        our_turn(site, made)
        site.stop(OUR_BROKER, CONTROLLER)
        check_log(kafka, site, epochs=3, topics=made)
