"""Which snapshot has the right state of a log that lacks records."""

from types import SimpleNamespace
from typing import Any

import pytest

from kquorum.spark_replay.checks.checking import snapshots_behind


def behind(since: int | None, hashes: dict[int, str | None]) -> dict[str, str]:
    files = tuple(SimpleNamespace(name=f"{end}.checkpoint", end_offset=end) for end in hashes)
    inputs: Any = SimpleNamespace(
        missing_since={} if since is None else {"a": since},
        sources=(SimpleNamespace(source="a", files=files),),
    )
    digests = [
        SimpleNamespace(file=f"{end}.checkpoint", state_hash=state_hash) for end, state_hash in hashes.items()
    ]
    replayed: Any = [SimpleNamespace(source="a", snapshots=digests)]
    return snapshots_behind(inputs, replayed)


@pytest.mark.parametrize(
    ("since", "hashes", "named"),
    [
        (10, {5: "h", 20: "h", 30: "h"}, "30.checkpoint"),
        (10, {5: "h", 20: "h", 30: None}, "20.checkpoint"),
        (10, {5: "h", 10: "h"}, None),
        (None, {20: "h"}, None),
    ],
)
def test_the_newest_sound_snapshot_behind_the_missing_records_is_named(
    since: int | None, hashes: dict[int, str | None], named: str | None
) -> None:
    assert behind(since, hashes) == ({} if named is None else {"a": named})
