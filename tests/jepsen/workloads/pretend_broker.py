"""Brokers that the harness only pretends to run: they register, send heartbeats, and hold nothing.

Partitions can be placed on them, and a client that has their epochs may report in-sync sets in their name. Heartbeats
come from a thread of their own, so that no operation of a client that waits for a dead leader lets a session end.
"""

import threading
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.errors import ClientError, not_sent, refused
from tests.jepsen.faults.quorum_view import NoLeader, QuorumView
from tests.jepsen.workloads.register_controllers import Controllers
from tests.jepsen.workloads.workload import Setup
from tests.support.api_calls import feature_values

SESSION_TIMEOUT_MS = 15_000
"""A new leader gives every broker a whole session, so that sessions need not outlast a fault. They are no longer than
this because real brokers that were killed stay away until the session of their former run is over."""
_HEARTBEAT_INTERVAL_S = 0.5
_TIMEOUT_S = 2.0
_NONE, _STALE_BROKER_EPOCH, _BROKER_ID_NOT_REGISTERED = 0, 77, 102
# A pretend broker has applied whatever there will ever be: it reads no log.
_ALL_APPLIED = 2**62


@dataclass(slots=True)
class PretendBroker:
    """`epoch` is None while it is not registered; `heard_s` is when a controller last took a heartbeat."""

    id: int
    incarnation_id: uuid.UUID = field(default_factory=uuid.uuid4)
    directory_id: uuid.UUID = field(default_factory=uuid.uuid4)
    epoch: int | None = None
    is_fenced: bool = True
    heard_s: float = 0.0

    def registration(self, cluster_id: str) -> dict[str, object]:
        listener = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "security_protocol": 0}
        return {
            "broker_id": self.id,
            "cluster_id": cluster_id,
            "incarnation_id": self.incarnation_id,
            "listeners": [listener],
            "features": feature_values(),
            "rack": None,
            "is_migrating_zk_broker": False,
            "log_dirs": [self.directory_id],
            "previous_broker_epoch": -1,
        }

    def heartbeat(self) -> dict[str, object]:
        assert self.epoch is not None, "only a registered broker has a heartbeat"
        return {
            "broker_id": self.id,
            "broker_epoch": self.epoch,
            "current_metadata_offset": _ALL_APPLIED,
            "want_fence": False,
            "want_shut_down": False,
            "offline_log_dirs": [],
            "cordoned_log_dirs": None,
        }


class PretendBrokers:
    """Alive for as long as a thread that called `attend`.

    `fencings` counts how often one was found fenced after a silence for which a controller may do so; then leaders
    and in-sync sets have changed without a client's doing.
    """

    def __init__(self, setup: Setup, broker_ids: tuple[int, ...]) -> None:
        self._setup = setup
        self._quorum = QuorumView(setup.network, setup.members.quorum)
        self._leader: int | None = None
        self.brokers = [PretendBroker(broker_id) for broker_id in broker_ids]
        self._row = deque(self.brokers)
        self._needed_by: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._heard = threading.Condition()
        self._thread: threading.Thread | None = None
        self._cluster_id: str | None = None
        self.fencings = 0

    def attend(self) -> None:
        """Keep them alive until the calling thread has ended."""
        with self._lock:
            self._needed_by.append(threading.current_thread())
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jepsen-heartbeats", daemon=True)
                self._thread.start()

    def wait_until_unfenced(self, timeout_s: float) -> None:
        """Or until the time is over."""
        with self._heard:
            self._heard.wait_for(lambda: not any(each.is_fenced for each in self.brokers), timeout_s)

    def epochs(self) -> dict[int, int]:
        """Raises ClientError, with nothing sent, while one of them is not registered or is fenced."""
        found = {each.id: each.epoch for each in self.brokers if not each.is_fenced}
        epochs = {broker_id: epoch for broker_id, epoch in found.items() if epoch is not None}
        if len(epochs) < len(self.brokers):
            missing = ", ".join(str(each.id) for each in self.brokers if each.id not in epochs)
            raise not_sent(f"pretend brokers not registered, or fenced: {missing}")
        return epochs

    def _run(self) -> None:
        self._setup.network.enter_as_client()
        controllers = Controllers(self._setup, self._setup.members.quorum[0], _TIMEOUT_S)
        pace = threading.Event()
        while any(thread.is_alive() for thread in self._needed_by):
            try:
                self._round(controllers)
            except (ClientError, NoLeader):
                self._leader = None  # the next round looks for it again
            pace.wait(_HEARTBEAT_INTERVAL_S)
        controllers.close()

    def _round(self, controllers: Controllers) -> None:
        """Each broker's registration or heartbeat, once. Raises at the first that had no good answer."""
        if self._cluster_id is None:
            self._cluster_id = controllers.cluster_id()
        if self._leader is None:
            # By its epoch: a leader that was left behind would keep heartbeats until it knows.
            self._leader = self._quorum.leader().leader_id
        client = controllers.client(self._leader)
        for _ in self.brokers:
            # Who comes first now comes last next time, so that an answer that never comes is not always one broker's.
            broker = self._row[0]
            self._row.rotate(-1)
            if broker.epoch is None:
                response = client.request(ApiKey.BROKER_REGISTRATION, broker.registration(self._cluster_id))
                _check(response)
                broker.epoch = int(response.broker_epoch)
            response = client.request(ApiKey.BROKER_HEARTBEAT, broker.heartbeat())
            self.hear(broker, int(response.error_code), is_fenced=bool(response.is_fenced))

    def hear(self, broker: PretendBroker, error_code: int, *, is_fenced: bool) -> None:
        """What a heartbeat was answered. Raises ClientError for an error after which it is to be sent elsewhere."""
        if error_code in (_STALE_BROKER_EPOCH, _BROKER_ID_NOT_REGISTERED):
            broker.epoch, broker.is_fenced = None, True
            return
        if error_code != _NONE:
            raise refused(error_code, "heartbeat refused", None)
        now_s = time.monotonic()
        silent_ms = (now_s - broker.heard_s) * 1000
        if is_fenced and not broker.is_fenced and silent_ms >= SESSION_TIMEOUT_MS:
            self.fencings += 1
        with self._heard:
            broker.is_fenced, broker.heard_s = is_fenced, now_s
            self._heard.notify_all()


def _check(response: Any) -> None:
    if int(response.error_code) != _NONE:
        raise refused(int(response.error_code), response.error_code.name, None)
