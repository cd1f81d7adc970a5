"""A log directory that no longer responds is reported to the controller, once, and stays offline."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

from kquorum.broker.adapters.log_dirs import LogDirWatch
from kquorum.storage.meta_properties import MetaProperties, write_meta_properties

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def formatted(folder: Path, directory_id: UUID) -> Path:
    folder.mkdir(exist_ok=True)
    properties = MetaProperties(cluster_id=CLUSTER_ID, node_id=1, directory_id=directory_id)
    write_meta_properties(folder, properties, now_ms=0)
    return folder


def watched(directories: dict[Path, UUID], *steps: Callable[[], object]) -> list[tuple[UUID, ...]]:
    """What was told, one directory failing with each step."""

    async def main() -> list[tuple[UUID, ...]]:
        told: list[tuple[UUID, ...]] = []
        watch = LogDirWatch(directories, look_every_s=0.01)
        watch.start(told.append)
        async with asyncio.timeout(60):
            for number, step in enumerate(steps, start=1):
                step()
                while len(told) < number:  # noqa: ASYNC110 - the watch tells a list
                    await asyncio.sleep(0.005)
        watch.close()
        assert watch.offline == told[-1]
        return told

    return asyncio.run(main())


def test_directories_that_vanish_or_turn_into_others(tmp_path: Path) -> None:
    first, second, third = (uuid4() for _ in range(3))
    folders = {
        formatted(tmp_path / "a", first): first,
        formatted(tmp_path / "b", second): second,
        formatted(tmp_path / "c", third): third,
    }
    told = watched(
        folders,
        lambda: shutil.rmtree(tmp_path / "b"),
        lambda: formatted(tmp_path / "c", uuid4()),
    )
    assert told == [(second,), (second, third)]
