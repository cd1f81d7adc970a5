"""A client that writes all the time, and notes when which controller acknowledged.

It registers as a broker and allocates producer ids: each write is one record, and is acknowledged with a block of ids
that must never be given out twice. So it also sees if something that was acknowledged was lost.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError
from tests.support.api_calls import feature_values

BROKER_ID = 1001
REQUEST_TIMEOUT_S = 5.0
# Between acknowledged writes, and between two rounds in which no controller took the write.
PACE_S, SEARCH_PAUSE_S = 0.01, 0.002
_NOT_CONTROLLER = 41
_LISTENER = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9, "security_protocol": 0}


class NoWriteAcknowledgedError(Exception):
    """Nothing was acknowledged in time; the text says what the controllers last answered."""


class WriteRefusedError(Exception):
    """A controller that leads does not take the write, for a reason that time does not mend."""


class AcknowledgedWriteLostError(Exception):
    """A block of producer ids was given out twice."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A write: when it was sent and acknowledged (seconds of the monotonic clock), and by whom."""

    sent_at_s: float
    at_s: float
    node_id: int
    first_producer_id: int


class Writer:
    """Writes in a thread of its own while the `with` block lasts. One request at a time, at one controller after the
    other until one takes it."""

    def __init__(self, addresses: Mapping[int, tuple[str, int]], cluster_id: str) -> None:
        self._clients = {
            node_id: RawClient(host, port, REQUEST_TIMEOUT_S) for node_id, (host, port) in addresses.items()
        }
        self._order = list(addresses)
        self._cluster_id = cluster_id
        self._broker_epoch: int | None = None
        self._acknowledged: list[Acknowledged] = []
        self._said: dict[int, str] = {}
        self._failure: Exception | None = None
        self._news = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(2 * REQUEST_TIMEOUT_S)
        for client in self._clients.values():
            client.close()

    # Looking on

    def first(self, wanted: Callable[[Acknowledged], bool], after_s: float, timeout_s: float) -> Acknowledged:
        """The first such write that was acknowledged after this moment, awaited if need be.

        Raises NoWriteAcknowledgedError, or what ended the writer.
        """
        found: list[Acknowledged] = []

        def is_there() -> bool:
            found.extend(write for write in self._since(after_s) if wanted(write))
            return bool(found) or self._failure is not None

        with self._news:
            self._news.wait_for(is_there, timeout_s)
            if self._failure is not None:
                raise self._failure
        if not found:
            reasons = "; ".join(f"node {node_id}: {said}" for node_id, said in sorted(self._said.items()))
            raise NoWriteAcknowledgedError(f"no write was acknowledged within {timeout_s:.0f} s ({reasons})")
        return found[0]

    def last_by(self, node_id: int, since_s: float) -> Acknowledged | None:
        """The last write which this controller acknowledged since then."""
        with self._news:
            writes = [write for write in self._since(since_s) if write.node_id == node_id]
        return writes[-1] if writes else None

    def latencies_s(self, since_s: float, until_s: float) -> list[float]:
        """Of the writes acknowledged in between, each from being sent."""
        with self._news:
            return [write.at_s - write.sent_at_s for write in self._since(since_s) if write.at_s <= until_s]

    def _since(self, moment_s: float) -> list[Acknowledged]:
        """Newest writes are few, and stand at the end."""
        found = []
        for write in reversed(self._acknowledged):
            if write.at_s <= moment_s:
                break
            found.append(write)
        return found[::-1]

    # Writing

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._stop.wait(PACE_S if self._write_somewhere() else SEARCH_PAUSE_S)
        except Exception as error:  # noqa: BLE001 - the thread's boundary: it is raised where it is waited for
            with self._news:
                self._failure = error
                self._news.notify_all()

    def _write_somewhere(self) -> bool:
        """Ask every controller once, the last one that took a write first; answers whether one did."""
        for node_id in tuple(self._order):
            if self._write(node_id):
                self._order.remove(node_id)
                self._order.insert(0, node_id)
                return True
        return False

    def _write(self, node_id: int) -> bool:
        try:
            return self._register(node_id) if self._broker_epoch is None else self._allocate(node_id)
        except ClientError as error:
            self._said[node_id] = error.reason
            return False

    def _takes(self, node_id: int, response: Any) -> bool:
        """Whether the controller took the write; raises WriteRefusedError unless it only does not lead."""
        code = int(response.error_code)
        if code not in (0, _NOT_CONTROLLER):
            raise WriteRefusedError(f"node {node_id} refuses a write: {response.error_code.name.upper()}")
        self._said[node_id] = response.error_code.name.upper() if code else "it takes writes"
        return code == 0

    def _register(self, node_id: int) -> bool:
        values = {
            "broker_id": BROKER_ID,
            "cluster_id": self._cluster_id,
            "incarnation_id": UUID(int=BROKER_ID),
            "listeners": [_LISTENER],
            "features": feature_values(),
            "rack": None,
            "is_migrating_zk_broker": False,
            "log_dirs": [UUID(int=BROKER_ID)],
            "previous_broker_epoch": -1,
        }
        response = self._clients[node_id].request(ApiKey.BROKER_REGISTRATION, values)
        if not self._takes(node_id, response):
            return False
        self._broker_epoch = int(response.broker_epoch)
        return True

    def _allocate(self, node_id: int) -> bool:
        sent_at_s = time.perf_counter()
        values = {"broker_id": BROKER_ID, "broker_epoch": self._broker_epoch}
        response = self._clients[node_id].request(ApiKey.ALLOCATE_PRODUCER_IDS, values)
        at_s = time.perf_counter()
        if not self._takes(node_id, response):
            return False
        self._note(Acknowledged(sent_at_s, at_s, node_id, int(response.producer_id_start)))
        return True

    def _note(self, write: Acknowledged) -> None:
        with self._news:
            if self._acknowledged and write.first_producer_id <= self._acknowledged[-1].first_producer_id:
                raise AcknowledgedWriteLostError(
                    f"node {write.node_id} gave out the producer ids from {write.first_producer_id}, but those from "
                    f"{self._acknowledged[-1].first_producer_id} had been acknowledged before"
                )
            self._acknowledged.append(write)
            self._news.notify_all()
