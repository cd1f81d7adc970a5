"""The logs in which faults are planted, with those that have none, and where the steps of each begin."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from kquorum.cli.main import run
from kquorum.wire.metadata_records.features import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from kquorum.wire.metadata_records.security import UserScramCredentialRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord, TopicRecord
from tests.support.sample_logs import COMMITTED, ORDERS, broker, partition
from tests.support.spark.lawful_life import LawfulLife
from tests.support.spark.planted import (
    History,
    Step,
    config,
    drop_batch,
    flip_byte,
    forged,
    lawful_steps,
    set_epoch_back,
    unfenced,
    with_step,
    write_history,
)

RANDOM = ("random-1", "random-2")
VOTERS = ("voter-1", "voter-2", "voter-3")
SECRETS = ("secret-1", "secret-2")


def moved(number: int = 0, **values: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=ORDERS, **values)  # type: ignore[arg-type]


def index_of(name: str) -> int:
    return [step.name for step in lawful_steps()].index(name)


STEPS: dict[str, list[Step]] = {
    "sound": lawful_steps(),
    "flipped": lawful_steps(),
    "dropped": lawful_steps(),
    "epoch-back": lawful_steps(),
    "forged-note": forged(lawful_steps(), "second note"),
    "leader-outside": with_step("moved", moved(leader=1, isr=(2, 3))),
    "recovering": with_step("moved", moved(leader=1, isr=(2, 3), leader_recovery_state=1)),
    "isr-outside": with_step("moved", moved(isr=(1, 4))),
    "partition-epoch": with_step(
        "again", replace(partition(ORDERS, 0, 1, (1, 2, 3)), leader_epoch=1), before="second note"
    ),
    "removed-topic": with_step(
        "late", PartitionChangeRecord(partition_id=0, topic_id=COMMITTED, isr=(1,)), before="end"
    ),
    "removed-twice": with_step("late", RemoveTopicRecord(topic_id=COMMITTED), before="end"),
    "made-twice": with_step("late", TopicRecord(name="orders", topic_id=COMMITTED), before="end"),
    "no-partition": with_step("late", moved(7, isr=(1,)), before="end"),
    "gone-broker": with_step("late", unfenced(3), before="end"),
    "stale-broker": with_step("newer", broker(2, 9), unfenced(2), before="end"),
    "begin-twice": with_step("open", BeginTransactionRecord(name="open"), before="begun"),
    "end-alone": with_step("alone", EndTransactionRecord(), before="end"),
    "left-open": with_step("last", BeginTransactionRecord(name="open"), config("9"), before="end")[:-1],
}
BYTES: dict[str, Callable[[Path], None]] = {
    "flipped": lambda folder: flip_byte(folder, index_of("moved")),
    "dropped": lambda folder: drop_batch(folder, index_of("idle")),
    "epoch-back": lambda folder: set_epoch_back(folder, index_of("third note"), 1),
}


def write_planted(root: Path) -> None:
    """All of them, each in a folder of its name."""
    for name, steps in STEPS.items():
        write_history(root / name, steps)
        BYTES.get(name, lambda _: None)(root / name)
    for name, steps in random_steps().items():
        write_history(root / name, steps)
    write_snapshots(root, offsets_of(lawful_steps())["transaction"])
    write_voters(root)


def offsets_of(steps: list[Step]) -> dict[str, int]:
    history = History(steps)
    history.data()
    return history.at


def random_steps() -> dict[str, list[Step]]:
    return {name: LawfulLife(Random(seed)).steps(150) for seed, name in enumerate(RANDOM)}


def write_snapshots(root: Path, offset: int) -> None:
    """A log with a snapshot, and the snapshot without the log."""
    write_history(root / "with-snapshot", lawful_steps())
    assert run(["snapshot", "take", str(root / "with-snapshot"), "--offset", str(offset), "--committed"]) == 0
    (path,) = (root / "with-snapshot" / "__cluster_metadata-0").glob("*.checkpoint")
    (root / "only-snapshot" / "__cluster_metadata-0").mkdir(parents=True)
    shutil.copy(path, root / "only-snapshot" / "__cluster_metadata-0")


def write_voters(root: Path) -> None:
    """The three voters of one quorum. One has not fetched the last batch, and another holds another record where
    all have committed."""
    steps = lawful_steps()
    lied = [
        replace(step, records=(NoOpRecord(), NoOpRecord())) if step.name == "second note" else step
        for step in steps
    ]
    for node_id, (name, held) in enumerate(zip(VOTERS, (steps, lied, steps[:-1]), strict=True), start=1):
        write_history(root / name, held, node_id=node_id, cluster="voters")
    for node_id, name in enumerate(SECRETS, start=1):
        write_history(root / name, [*steps, stored_key(node_id)], node_id=node_id, cluster="secrets")


def stored_key(node_id: int) -> Step:
    """What the tables show as the same in the logs of any two nodes."""
    key = bytes([node_id]) * 32
    credential = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"salt", stored_key=key, server_key=key, iterations=4096
    )
    return Step("secret", (credential,))
