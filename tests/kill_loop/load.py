"""Clients that create and delete topics without pause, each answer noted in the ledger."""

from collections.abc import Callable
from random import Random
from threading import Event, Thread
from types import TracebackType
from typing import Self

from kquorum.cli.processes import NodeFailed, wait_until
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError
from tests.kill_loop.ledger import Fate, Ledger

REQUEST_TIMEOUT_S = 5.0
# Between two requests of a client; longer after an error, so that a broker without a controller is not asked in vain.
PACE_S, ERROR_PAUSE_S = 0.01, 0.1
# A client that has more topics than this deletes as often as it creates.
KEPT_MAX = 40


class TopicLoad:
    """`clients` threads, each with a connection of its own to one broker, while the `with` block lasts."""

    def __init__(self, host: str, port: int, clients: int, ledger: Ledger, random_source: Random) -> None:
        self.ledger = ledger
        self._address = (host, port)
        self._stop = Event()
        self._failure: Exception | None = None
        self._threads = [
            Thread(
                target=self._run,
                args=(number, Random(random_source.random())),
                name=f"load-{number}",
                daemon=True,
            )
            for number in range(clients)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Every request is answered or given up then."""
        self._stop.set()
        for thread in self._threads:
            thread.join(4 * REQUEST_TIMEOUT_S)
            assert not thread.is_alive(), "every call of a client ends within its timeout"
        if self._failure is not None and error is None:
            raise self._failure

    def progressed(self, since: int, by: int, timeout_s: float) -> bool:
        """Whether so many more requests were acknowledged in time than there were."""
        return wait_until(lambda: self.ledger.acknowledged >= since + by, timeout_s)

    def _run(self, number: int, random_source: Random) -> None:
        client = TopicsClient(RawClient(*self._address, REQUEST_TIMEOUT_S), round(REQUEST_TIMEOUT_S * 1000))
        kept: list[str] = []
        made = 0
        try:
            while not self._stop.is_set():
                if kept and random_source.random() < 0.5 * len(kept) / KEPT_MAX:
                    was_fine = self._delete(client, kept.pop(random_source.randrange(len(kept))))
                else:
                    made += 1
                    was_fine = self._create(client, name := f"kill-{number}-{made:06d}")
                    kept += [name] if was_fine else []
                self._stop.wait(PACE_S if was_fine else ERROR_PAUSE_S)
        except Exception as error:  # noqa: BLE001 - the thread's boundary: it is raised where the load ends
            self._failure = error
        finally:
            client.close()

    def _create(self, client: TopicsClient, name: str) -> bool:
        return self._ask(name, lambda: client.create(name), self.ledger.created, Fate.ABSENT)

    def _delete(self, client: TopicsClient, name: str) -> bool:
        return self._ask(name, lambda: client.delete(name), self.ledger.deleted, Fate.PRESENT)

    def _ask(
        self, name: str, request: Callable[[], None], done: Callable[[str], None], unless_done: Fate
    ) -> bool:
        self.ledger.begin(name)
        try:
            request()
        except ClientError as error:
            if error.definite:
                self.ledger.refused(name, unless_done)
            else:
                self.ledger.unanswered()
            return False
        done(name)
        return True


def create_last(host: str, port: int, ledger: Ledger, name: str, timeout_s: float) -> tuple[str, set[str]]:
    """Create one more topic: its name, and all topics that the broker lists once it knows of it. Raises NodeFailed."""
    client = TopicsClient(RawClient(host, port, REQUEST_TIMEOUT_S), round(REQUEST_TIMEOUT_S * 1000))
    attempts = iter(range(1_000_000))
    created: list[str] = []
    found: set[str] = set()

    def is_created() -> bool:
        attempt = f"{name}-{next(attempts)}"
        ledger.begin(attempt)
        try:
            client.create(attempt)
        except ClientError:
            return False
        ledger.created(attempt)
        created.append(attempt)
        return True

    def is_listed() -> bool:
        try:
            found.clear()
            found.update(client.list())
        except ClientError:
            return False
        return created[0] in found

    try:
        if not wait_until(is_created, timeout_s, interval_s=0.1) or not wait_until(is_listed, timeout_s):
            raise NodeFailed(f"topic {name} was not created and listed within {timeout_s:.0f} s")
    finally:
        client.close()
    return created[0], found
