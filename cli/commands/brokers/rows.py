"""The brokers of a cluster as `kquorum brokers` shows them, and the problems that `--check` names."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kquorum.wire.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """One broker. None is what the answering node did not tell: `lag` is in records behind what is committed,
    `silent_ms` how long ago its last heartbeat came, `says` what it answered itself."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool
    state: str
    epoch: int | None = None
    applied_offset: int | None = None
    lag: int | None = None
    silent_ms: int | None = None
    directories: tuple[str, ...] = ()
    says: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """`committed_offset` is the last, None where only a broker answered."""

    cluster_id: str
    committed_offset: int | None
    brokers: tuple[BrokerRow, ...]


def problems_of(rows: Iterable[BrokerRow], max_lag: int) -> Iterator[str]:
    """What a script wants to know: brokers that are fenced, lag, report that they are unhealthy, or whose state is
    unknown."""
    for row in rows:
        if row.state != "active":
            yield f"broker {row.broker_id} is {row.state}"
        elif row.lag is None:
            yield f"how far broker {row.broker_id} follows is not known"
        elif row.lag > max_lag:
            yield f"broker {row.broker_id} is {counted(row.lag, 'record')} behind"
        if row.says is not None:
            yield f"broker {row.broker_id}: {row.says}"


# What `--json` tells too, the least interesting first.
SPARE_COLUMNS = ("#directories", "#epoch", "rack", "#heard")


def table_of(rows: Iterable[BrokerRow]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Columns and cells; a fact that is known of no broker has no column."""
    rows = tuple(rows)
    columns: list[tuple[str, list[object]]] = [
        ("#broker", [row.broker_id for row in rows]),
        ("address", [f"{row.host}:{row.port}" for row in rows]),
        ("rack", [row.rack for row in rows]),
        ("state", [_styled(row) for row in rows]),
    ]
    optional: tuple[tuple[str, list[object]], ...] = (
        ("#epoch", [row.epoch for row in rows]),
        ("#applied", [row.applied_offset for row in rows]),
        ("#lag", [row.lag for row in rows]),
        ("#heard", [None if row.silent_ms is None else f"{row.silent_ms / 1000:.1f} s ago" for row in rows]),
        ("#directories", [len(row.directories) or None for row in rows]),
        ("~says", [row.says for row in rows]),
    )
    columns += [
        (name, cells) for name, cells in optional if name == "#lag" or any(c is not None for c in cells)
    ]
    names = tuple(name for name, _ in columns)
    return names, list(zip(*(cells for _, cells in columns), strict=True))


def _styled(row: BrokerRow) -> Any:
    from rich.text import Text

    return Text(row.state, style="green" if row.state == "active" else "yellow")
