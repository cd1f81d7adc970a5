"""A controller's data folder changes hands between Kafka and us, time and again, its log's beginning cut off by either.

Each owner is killed, so that the next one finds what a crash leaves, such as indexes with room for more entries, and
beside it what may have been left over from before.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from kquorum.cli.main import run as run_kquorum
from kquorum.cli.processes import wait_until
from kquorum.raft.adapters.quorum_state_file import CHECKSUM_KEY
from kquorum.snapshots.naming import snapshot_id_of
from tests.interop.dumps import Dumped, assert_same_dumps, check_indexes_with_kafka, dump_with_ours
from tests.interop.kafka_process import Kafka
from tests.interop.leftovers import plant_kafkas, plant_ours
from tests.interop.node_config import NodeConfig
from tests.interop.site import WAIT_S, Layout, Site

pytestmark = pytest.mark.interop

CONTROLLER, KAFKA_BROKER, OUR_BROKER = 1, 101, 102
OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": 3_000,
    "metadata.log.max.snapshot.interval.ms": 1_000,
    "metadata.max.retention.bytes": 12_000,
}
SMALL = {"metadata.log.segment.bytes": 4_096}
# Kafka gives up where a batch is larger than this, such as that of a broker which leads all partitions and stops.
KAFKAS_SMALL = {"internal.metadata.log.segment.bytes": 16_384}
TOPICS_IN_TURN = 40
# Kafka looks once a minute for what its retention has no more use for.
KAFKA_CUTS_WITHIN_S = 120.0
# Of internal.metadata.log.segment.bytes; and of requests that come before it has become active.
_HARMLESS = (
    "controller event queue overloaded",  # the machine is slow, says Kafka
    "may lead to an inability to write batches of metadata records.",
    "kafka.server.ControllerApis",
)
_BAD_LINE = re.compile(r" (WARN|WARNING|ERROR|FATAL|CRITICAL) ")


class Folder:
    """The controller's folder, and what must be in it."""

    def __init__(self, kafka: Kafka, folder: Path, quorum: str, broker_id: int = OUR_BROKER) -> None:
        """The broker is `broker_id` in all turns; KAFKA_BROKER is run by Kafka, OUR_BROKER by us."""
        self.kafka = kafka
        self.is_dynamic = quorum == "dynamic"
        layout = Layout(
            controllers=(CONTROLLER,),
            brokers=(broker_id,),
            is_dynamic=self.is_dynamic,
            ours=OFTEN | SMALL,
            kafkas=OFTEN | KAFKAS_SMALL,
        )
        self.site = Site(kafka, folder, layout)
        self.node = self.site.nodes[CONTROLLER]
        self.broker_id = broker_id
        self.topics: set[str] = set()
        self.epoch = 0
        self.is_ours = False

    def kafkas_turn(self, name: str) -> None:
        """Kafka goes on over what we leave there at the worst, and says nothing of it."""
        leftovers = plant_ours(self.node) if self.topics else []
        self.is_ours = False
        server = self.site.start_kafka(CONTROLLER)[0]
        self._turn(name)
        assert not complaints(server.output(), leftovers)

    def our_turn(self, name: str) -> None:
        leftovers = plant_kafkas(self.node) if self.topics else []
        self.is_ours = True
        self.site.start_ours(CONTROLLER)
        self._turn(name)
        assert not complaints((self.node.data / "kquorum.log").read_text(), leftovers)

    def _turn(self, name: str) -> None:
        """More topics, until there is a snapshot that has all of them; then the sudden end."""
        site, first = self.site, not self.topics
        status = site.await_quorum(lambda status: status.leader_id == CONTROLLER)
        assert status.leader_epoch > self.epoch
        self.epoch = status.leader_epoch
        if first:
            site.start_kafka(self.broker_id) if self.broker_id == KAFKA_BROKER else site.start_ours(
                self.broker_id
            )
        names = {f"{name}-{number}" for number in range(TOPICS_IN_TURN)}
        self.topics |= names
        site.create_topics(names, self.broker_id)
        assert wait_until(lambda: site.topics(self.broker_id) == self.topics, WAIT_S), site.tails()
        assert wait_until(self._is_in_snapshot, WAIT_S, 0.2), f"{self.node.snapshots()}\n{site.tails()}"

    def _is_in_snapshot(self) -> bool:
        """Snapshots wait for new records, which come by themselves."""
        snapshots = self.node.snapshots()
        return bool(snapshots) and topics_in(snapshots[-1]) == self.topics

    def await_cut(self, offset: int, timeout_s: float = WAIT_S) -> None:
        """Until the log begins above `offset`."""
        assert wait_until(lambda: self.node.log_start() > offset, timeout_s, 0.2), self.site.tails()

    def kill(self) -> None:
        self.site.kill(CONTROLLER)
        self._check_quorum_state()

    def stop(self) -> None:
        self.site.stop(self.broker_id, CONTROLLER)
        self._check_quorum_state()

    def _check_quorum_state(self) -> None:
        state = json.loads((self.node.metadata / "quorum-state").read_text())
        assert (state["leaderId"], state["leaderEpoch"]) == (CONTROLLER, self.epoch)
        assert state["data_version"] == (1 if self.is_dynamic else 0)
        assert ("currentVoters" in state) != self.is_dynamic
        assert (CHECKSUM_KEY in state) == self.is_ours, "Kafka starts over ours, and drops it"

    def check(self) -> None:
        """Both programs read the same of all files; nothing is missing between the snapshots and the log's end."""
        node = self.node
        paths = [*node.segments(), *node.checkpoints(), node.data / "bootstrap.checkpoint"]
        dumps = assert_same_dumps(self.kafka, paths)
        records = [record for path in node.segments() for record in dumps[path].records]
        assert [record.offset for record in records] == list(range(node.log_start(), records[-1].offset + 1))
        check_indexes_with_kafka(self.kafka, *node.metadata.glob("*.*index"))
        oldest = min(
            snapshot_id.end_offset for path in node.snapshots() if (snapshot_id := snapshot_id_of(path.name))
        )
        assert node.log_start() <= oldest <= records[-1].offset + 1
        check_epochs(node, records, oldest)
        for command in (["log", "verify"], ["snapshot", "verify"]):
            assert run_kquorum([*command, str(node.metadata)]) == 0


def complaints(said: str, leftovers: Iterable[str]) -> list[str]:
    """Errors, and warnings that name one of the files."""
    bad = [line for line in said.splitlines() if _BAD_LINE.search(line)]
    about_files = [line for line in bad if any(name in line for name in leftovers)]
    errors = [line for line in bad if " WARN" not in line and not any(words in line for words in _HARMLESS)]
    return about_files + errors


def topics_in(path: Path) -> set[str]:
    """Of a snapshot that may be gone by now, then none."""
    try:
        return {record.payload["name"] for record in dump_with_ours(path) if record.type == "topicrecord"}
    except OSError:
        return set()


def check_epochs(node: NodeConfig, records: list[Dumped], log_start: int) -> None:
    """`leader-epoch-checkpoint` says where each epoch of the log begins, the first one no later than the log does; of a
    log that starts where it ends, ours says nothing: the snapshot there has the epoch."""
    version, count, *lines = (node.metadata / "leader-epoch-checkpoint").read_text().split("\n")
    entries = [(int(epoch), int(offset)) for epoch, offset in (line.split() for line in lines if line)]
    assert (version, int(count)) == ("0", len(entries))
    if not entries:
        assert log_start == records[-1].offset + 1
        return
    begun: dict[int, int] = {}
    for record in records:
        begun.setdefault(record.leader_epoch, record.offset)
    known = [(epoch, offset) for epoch, offset in begun.items() if epoch > entries[0][0]]
    assert entries[1:] == known
    assert entries[0][0] in begun


@pytest.mark.slow
def test_a_folder_of_kafkas_goes_on_with_ours_and_back(kafka: Kafka, tmp_path: Path) -> None:
    folder = Folder(kafka, tmp_path, "static")
    with folder.site as site:
        site.format_with_kafka([CONTROLLER])
        site.format_with_ours([OUR_BROKER])
        folder.kafkas_turn("first")
        folder.kill()
        folder.our_turn("second")
        folder.await_cut(0)
        folder.kill()
        folder.kafkas_turn("third")
        folder.stop()
        folder.check()


@pytest.mark.slow
@pytest.mark.parametrize("quorum", ["static", "dynamic"])
def test_a_folder_of_ours_goes_on_with_kafka_which_cuts_it_and_back(
    kafka: Kafka, tmp_path: Path, quorum: str
) -> None:
    folder = Folder(kafka, tmp_path, quorum, broker_id=KAFKA_BROKER)
    with folder.site as site:
        site.format_with_ours([CONTROLLER])
        site.format_with_kafka([KAFKA_BROKER])
        folder.our_turn("first")
        folder.await_cut(0)
        ours = folder.node.log_start()
        folder.kill()
        folder.kafkas_turn("second")
        folder.await_cut(ours, KAFKA_CUTS_WITHIN_S)
        kafkas = folder.node.log_start()
        folder.kill()
        folder.our_turn("third")
        folder.await_cut(kafkas)
        folder.kill()
        folder.kafkas_turn("fourth")
        folder.kill()
        folder.our_turn("fifth")
        folder.stop()
        folder.check()
