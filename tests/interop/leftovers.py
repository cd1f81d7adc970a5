"""What a crash, a repair or a retention under way leaves in a data folder: ours and Kafka's, for the other to pass."""

from pathlib import Path

from tests.interop.node_config import NodeConfig

# All further ones (reserved.space, kquorum-metadata-log, recovery-point, elections.jsonl, *.log.deleted, ...) are in
# the folder of any node of ours that has run and cut its log.
OURS_ALWAYS = ("kquorum-metadata-log", "reserved.space", "kquorum.log")
OURS_ALWAYS_IN_LOG = ("recovery-point", "elections.jsonl")
_NONSENSE = b"what a torn write left here\x00\xff" * 20


def plant_ours(node: NodeConfig) -> list[str]:
    """The names of what is new. Raises AssertionError if one is missing that every running node makes."""
    found = [name for name in OURS_ALWAYS if (node.data / name).exists()]
    found += [name for name in OURS_ALWAYS_IN_LOG if (node.metadata / name).exists()]
    assert len(found) == len(OURS_ALWAYS) + len(OURS_ALWAYS_IN_LOG), f"only {found} in {node.data}"
    last = node.segments()[-1].name
    names = [
        # Being written, being fetched, being removed, set aside.
        "00000000000099999999-0000000009.checkpoint.part",
        "00000000000099999999-0000000009-fetched.checkpoint.part",
        "00000000000000000003-0000000001.checkpoint.deleted",
        "00000000000000000003-0000000001.checkpoint.damaged",
        "00000000000099999999.log.rolling",
        "00000000000099999999.log.damaged",
        f"{last}.damaged",
        "00000000000000000001.log.deleted",
        "00000000000000000001.index.deleted",
        "00000000000000000001.timeindex.deleted",
        "quorum-state.damaged",
        "quorum-state.lost",
        "quorum-state.tmp",
        "leader-epoch-checkpoint.tmp",
        "recovery-point.tmp",
        "elections.jsonl.1",
    ]
    _plant(node.metadata, names)
    return [*found, *names]


def plant_kafkas(node: NodeConfig) -> list[str]:
    names = [
        "00000000000099999999-0000000009-1234567890123456789.checkpoint.part",
        "00000000000000000003-0000000001.checkpoint.deleted",
        "00000000000000000002.log.deleted",
        "00000000000000000002.index.deleted",
        "00000000000000000002.timeindex.deleted",
        "00000000000000000002.snapshot",
        "00000000000099999999.snapshot",
        "00000000000000000002.snapshot.deleted",
        "00000000000000000002.txnindex.deleted",
        "quorum-state.tmp",
        "leader-epoch-checkpoint.tmp",
        "partition.metadata.tmp",
    ]
    _plant(node.metadata, names)
    beside = ["recovery-point-offset-checkpoint.tmp", ".kafka_cleanshutdown", "meta.properties.tmp"]
    _plant(node.data, beside)
    return names + beside


def _plant(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).write_bytes(_NONSENSE)
