"""What a crash in the middle of a compaction's replacement leaves, and how the next start ends it."""

import shutil
from pathlib import Path

import pytest

from kquorum.broker.log.log_config import LogConfig
from tests.support.broker.disk_logs import NOW_MS, data, log_dir_at, open_log, values_in

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=1)
ALL = [f"v{number}" for number in range(12)]


def with_copies(folder: Path, suffix: str, count: int = 2) -> list[Path]:
    """The first segments once more under another suffix, as the result of a compaction that removed nothing."""
    copies = []
    for path in sorted(folder.glob("*.log"))[:count]:
        for suffix_of in (".log", ".index", ".timeindex"):
            source = path.with_suffix(suffix_of)
            copies.append(Path(shutil.copyfile(source, source.with_name(source.name + suffix))))
    return copies


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    "phase", ["cleaned only", "cleaned and swap", "swap", "old ones deleted", "one renamed already"]
)
def test_a_replacement_that_a_crash_interrupted_is_undone_or_ended(
    tmp_path: Path, phase: str, is_clean: bool
) -> None:
    log_dir = log_dir_at(tmp_path)
    log = open_log(log_dir, SMALL)
    for number in range(12):
        log.append_as_leader(data(f"v{number}"), leader_epoch=0, now_ms=NOW_MS)
    log.close()
    folder = log.folder
    old = sorted(folder.glob("*.log"))[:2]
    copies = with_copies(folder, ".cleaned" if phase == "cleaned only" else ".swap")
    if phase == "cleaned and swap":
        for path in copies[:3]:
            path.rename(path.with_suffix(".cleaned"))
    if phase in ("old ones deleted", "one renamed already"):
        for path in old:
            path.rename(path.with_name(path.name + ".deleted"))
    if phase == "one renamed already":
        for path in copies[3:]:
            path.rename(path.with_suffix(""))
    again = open_log(log_dir, SMALL, is_clean=is_clean)
    assert values_in(again) == ALL
    assert not [path for path in folder.iterdir() if path.suffix in (".swap", ".cleaned", ".deleted")]
    again.append_as_leader(data("on"), leader_epoch=0, now_ms=NOW_MS)
    assert values_in(open_log(log_dir, SMALL)) == [*ALL, "on"]
