"""What Kafka's `DumpLogSegments` prints and what `kquorum log dump` prints, brought to one shape and compared."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kquorum.cli.commands.log.dump import DumpRequest, dump
from kquorum.cli.commands.log.dump_filters import DumpFilter
from kquorum.cli.failures import ExitStatus
from tests.interop.kafka_process import Kafka

DUMP = "org.apache.kafka.tools.DumpLogSegments"

# Ours alone: tagged fields that Kafka does not know, which it must read past in silence.
_HEADINGS = ("Log starting offset: ", "Snapshot end offset: ", "KRaft bootstrap snapshot")
ONLY_OURS = {"unknowntaggedfields", "auditnote"}

# What a tagged field reads as where it is not written, and a field where the version has none; null and empty lists
# go without saying. Kafka leaves them out.
UNSAID: Mapping[str, tuple[object, ...]] = {
    "leader": (-2,),
    "leaderrecoverystate": (0, -1),
    "voterdirectoryid": ("AAAAAAAAAAAAAAAAAAAAAA",),
    "fenced": (0,),
    "incontrolledshutdown": (False, 0),
    "ismigratingzkbroker": (False,),
    "zkmigrationready": (False,),
}

_BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*partitionLeaderEpoch: (-?\d+) .*isControl: (\w+) .*"
    r"position: (\d+) CreateTime: (-?\d+) size: (\d+) .*compresscodec: (\w+) crc: (\d+) isvalid: (\w+)"
)
_RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (-?\d+) keySize: (-?\d+) .*?headerKeys: \[\] (\w+):? (.*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """One record; `type` and the names in `payload` in small letters, without underscores."""

    offset: int
    position: int
    batch_base_offset: int
    leader_epoch: int
    timestamp_ms: int
    is_control: bool
    type: str
    version: int
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KafkaDump:
    records: tuple[Dumped, ...]
    codecs: tuple[str, ...]


def dump_with_kafka(kafka: Kafka, *paths: Path) -> dict[Path, KafkaDump]:
    """Each file as Kafka reads it. Raises AssertionError where it calls a batch invalid or cannot read a record."""
    printed = kafka.run(DUMP, "--cluster-metadata-decoder", "--files", ",".join(map(str, paths)))
    _, *parts = re.split(r"^Dumping (.*)$", printed, flags=re.MULTILINE)
    found = {Path(name): _parse_kafka(text) for name, text in zip(parts[0::2], parts[1::2], strict=True)}
    assert set(found) == set(paths), printed[:2000]
    return found


def check_indexes_with_kafka(kafka: Kafka, *paths: Path) -> None:
    """Raises AssertionError if an `.index` or `.timeindex` does not fit its segment."""
    printed = kafka.run(DUMP, "--verify-index-only", "--files", ",".join(map(str, paths)))
    # The index of a segment smaller than log.index.interval.bytes has no entry.
    expected = {f"{path} is empty." for path in paths if not path.stat().st_size}
    complaints = [
        line for line in printed.splitlines() if not line.startswith("Dumping ") and line not in expected
    ]
    assert not complaints, printed
    sanity = kafka.run(DUMP, "--index-sanity-check", "--files", ",".join(map(str, paths)))
    assert sanity.count("passed sanity check") + len(expected) == len(paths), sanity


def dump_with_ours(path: Path) -> tuple[Dumped, ...]:
    lines: list[str] = []
    request = DumpRequest(path=path, filter=DumpFilter(), as_json=True, show_secrets=True)
    assert dump(request, lines.append) is ExitStatus.OK, f"{path} is damaged"
    return tuple(_our_record(json.loads(line)) for line in lines)


def assert_same_dumps(kafka: Kafka, paths: Iterable[Path]) -> dict[Path, KafkaDump]:
    """Both programs must print the same records of each file, one by one; answers Kafka's."""
    dumps = dump_with_kafka(kafka, *paths)
    for path, theirs in dumps.items():
        assert_same(path.name, dump_with_ours(path), theirs.records)
    return dumps


def assert_same(name: str, ours: tuple[Dumped, ...], theirs: tuple[Dumped, ...]) -> None:
    for mine, other in zip(ours, theirs, strict=False):
        found = list(_differences(mine, other))
        assert not found, (
            f"{name}, offset {mine.offset}, {mine.type}: {found}\nours   {mine}\nKafka's {other}"
        )
    assert len(ours) == len(theirs), f"{name}: we print {len(ours)} records, Kafka {len(theirs)}"


def _differences(ours: Dumped, theirs: Dumped) -> Iterator[str]:
    for name in Dumped.__dataclass_fields__:
        mine, other = getattr(ours, name), getattr(theirs, name)
        if name == "payload":
            yield from _value_differences(name, mine, other)
        elif mine != other:
            yield f"{name}: {mine!r}, Kafka {other!r}"


def _value_differences(place: str, ours: Any, theirs: Any) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours.keys() | theirs.keys():
            if name not in theirs:
                if name not in ONLY_OURS and not _goes_without_saying(name, ours[name]):
                    yield f"{place}.{name}: {ours[name]!r}, Kafka nothing"
            elif name not in ours:
                yield f"{place}.{name}: nothing, Kafka {theirs[name]!r}"
            else:
                yield from _value_differences(f"{place}.{name}", ours[name], theirs[name])
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _value_differences(f"{place}[{index}]", mine, other)
    elif ours != theirs or type(ours) is not type(theirs):
        yield f"{place}: {ours!r}, Kafka {theirs!r}"


def _goes_without_saying(name: str, value: object) -> bool:
    unsaid = UNSAID.get(name, ())
    return value is None or value == [] or any(value == it and type(value) is type(it) for it in unsaid)


def _parse_kafka(text: str) -> KafkaDump:
    records: list[Dumped] = []
    codecs: list[str] = []
    batch: re.Match[str] | None = None
    for line in text.splitlines():
        if line.startswith("baseOffset: "):
            batch = _BATCH.match(line)
            assert batch is not None, line
            assert batch[11] == "true", f"Kafka calls the batch invalid: {line}"
            codecs.append(batch[9])
        elif line.startswith("| "):
            assert batch is not None, text[:500]
            records.append(_kafka_record(line, batch))
        else:
            assert line.startswith(_HEADINGS) or not line, line
    return KafkaDump(tuple(records), tuple(codecs))


def _kafka_record(line: str, batch: re.Match[str]) -> Dumped:
    record = _RECORD.match(line)
    assert record is not None, line
    is_control = batch[5] == "true"
    content = json.loads(record[5])
    kind = record[4] if is_control else content["type"]
    data = content if is_control else content["data"]
    return Dumped(
        offset=int(record[1]),
        position=int(batch[6]),
        batch_base_offset=int(batch[1]),
        leader_epoch=int(batch[4]),
        timestamp_ms=int(record[2]),
        is_control=is_control,
        type=_plain(kind),
        version=content["version"],
        payload=_plain_names(data),
    )


def _our_record(printed: dict[str, Any]) -> Dumped:
    assert printed["payload"] is not None, f"not decoded: {printed}"
    return Dumped(
        offset=printed["offset"],
        position=printed["position"],
        batch_base_offset=printed["batch_base_offset"],
        leader_epoch=printed["leader_epoch"],
        timestamp_ms=printed["timestamp_ms"],
        is_control=printed["is_control"],
        type=_plain(printed["type"]),
        version=printed["version"],
        payload=_plain_names(printed["payload"]),
    )


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _plain_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {_plain(name): _plain_names(item) for name, item in value.items()}
    return [_plain_names(item) for item in value] if isinstance(value, list) else value
