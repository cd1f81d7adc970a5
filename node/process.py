"""One node of the config, run in this process until a signal or a caller stops it."""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from kquorum import compiled
from kquorum.network.errors import NetworkError
from kquorum.node.config.model import ClusterConfig, NodeConfig
from kquorum.node.errors import AssertionsOff, NodeError
from kquorum.node.folders import NodeFolders
from kquorum.node.logs import FILE_NAME as LOG_FILE
from kquorum.node.logs import NodeLogging, ready_log
from kquorum.node.logs import log as notable_log
from kquorum.node.loop_watch import LoopWatch
from kquorum.node.security import check_security
from kquorum.node.state_freeze import freeze_what_is_loaded
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.storage.errors import EnvironmentFault
from kquorum.storage.file_system import POSIX

log = logging.getLogger("node")

# The loop, the thread of the disk and that of snapshots have one file each open for a moment, or a folder.
_SPARE_DESCRIPTORS = 8
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Node(Protocol):
    async def start(self) -> None:
        """Returns once it serves."""
        ...

    async def stop(self) -> None:
        """Orderly, also after `start` failed half way."""
        ...


def run_node(
    cluster: ClusterConfig, node_id: int, new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> None:
    """Blocks until SIGTERM or SIGINT, then stops in order; a second signal ends the process at once.

    Prints one line `HH:MM:SS kquorum node N ready: ...` on standard output when the node serves. What the environment
    refuses is raised as the adapters' exceptions (folder, port, disk), each naming the thing and the remedy.
    `new_loop` makes the event loop in place of uvloop's own.
    """
    config = cluster.node(node_id)
    if not __debug__:
        raise AssertionsOff
    check_security(cluster, config)
    with _StopSignals() as stop_signals:
        clock = MonotonicWallClock()
        folders = NodeFolders(config, clock.now_ms())
        try:
            logging_ = NodeLogging(config.metadata_log_dir, node_id)
            logging_.start()
            try:
                _run(config, folders, clock, stop_signals, new_loop)
            finally:
                logging_.stop()
        finally:
            folders.release()


class _StopSignals:
    """SIGTERM and SIGINT within the block: the first one asks for an orderly stop, a second one ends the process at
    once.

    These are Python's handlers, not the loop's, which exist only once it runs. A signal that came earlier, with the
    folder locked and the log begun, would end the process as a kill does.
    """

    def __init__(self) -> None:
        self._first: signal.Signals | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[signal.Signals], None] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def call_in(self, loop: asyncio.AbstractEventLoop, stop: Callable[[signal.Signals], None]) -> None:
        """From now on `loop` calls `stop` for the first signal; at once for one that came before."""
        self._loop, self._stop = loop, stop
        if self._first is not None:
            self._call_stop()

    def leave(self) -> None:
        """The loop ends: a signal that comes now changes nothing more."""
        self._loop = None

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        """Between any two instructions of the main thread: the loop does the rest."""
        if self._first is not None:
            os._exit(128 + number)
        self._first = signal.Signals(number)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._call_stop)

    def _call_stop(self) -> None:
        """Once: a signal in the middle of `call_in` asks for it twice."""
        stop, self._stop = self._stop, None
        if stop is not None and self._first is not None:
            stop(self._first)


def _run(
    config: NodeConfig,
    folders: NodeFolders,
    clock: MonotonicWallClock,
    stop_signals: _StopSignals,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None,
) -> None:
    import uvloop

    log.info("starting as %s with cluster id %s", ", ".join(config.process_roles), folders.cluster_id)
    log.info("compiled modules: %s", compiled.STATE)
    for note in folders.notes:
        log.warning("%s", note)
    POSIX.spares.hold(_SPARE_DESCRIPTORS)
    try:
        life = _Life(config, folders, clock, stop_signals)
        if new_loop is None:
            uvloop.run(life.run())
        else:
            uvloop.run(life.run(), loop_factory=new_loop)  # type: ignore[arg-type]
    except (EnvironmentFault, NetworkError, NodeError) as error:
        log.critical("%s", error)
        raise
    except Exception as error:
        log.critical("the node ends: %s", error, exc_info=True)
        raise
    log.info("stopped")


class _Life:
    """From start to stop, and the two things that end it: a signal or a fatal error."""

    def __init__(
        self, config: NodeConfig, folders: NodeFolders, clock: MonotonicWallClock, stop_signals: _StopSignals
    ) -> None:
        self._config = config
        self._folders = folders
        self._clock = clock
        self._stop_signals = stop_signals

    async def run(self) -> None:
        """Raises what was fatal; then nothing is stopped in order, for the disk or our state cannot be trusted."""
        loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[None] = loop.create_future()
        self._stop_signals.call_in(loop, self._handle_signal)
        try:
            if not self._ending.done():
                await self._run_node(loop)
        finally:
            self._stop_signals.leave()

    async def _run_node(self, loop: asyncio.AbstractEventLoop) -> None:
        node = self._make_node()
        gc.freeze()
        gc.enable()
        starting = loop.create_task(node.start())
        await asyncio.wait((starting, self._ending), return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and starting.exception() is None:
            self._announce()
            watch = LoopWatch()
            watch.start()
            await asyncio.wait((self._ending,))
            watch.close()
        starting.cancel()
        await asyncio.wait((starting,))
        if self._ending.done():
            self._ending.result()
        await node.stop()
        if not starting.cancelled():
            starting.result()

    def _make_node(self) -> Node:
        # gRPC reads it when it is imported. Without it gRPC writes a line to standard error for each TLS handshake that
        # fails, and with ERROR for each header that it cannot read, so clients could fill a disk with them.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        from kquorum.node.cluster_node import ClusterNode

        return ClusterNode(self._config, self._folders, self._clock, self._handle_fatal)

    def _announce(self) -> None:
        freeze_what_is_loaded()
        config = self._config
        served = [
            *(config.controller_listeners if config.is_controller else ()),
            *(config.broker_listeners if config.is_broker else ()),
        ]
        places = [f"{listener.name}://{listener.host}:{listener.port}" for listener in served]
        if config.kquorum_grpc_listener is not None:
            places.append(f"grpc://{config.kquorum_grpc_listener}")
        if config.kquorum_metrics_listener is not None:
            places.append(f"http://{config.kquorum_metrics_listener}")
        log_file = config.metadata_log_dir / LOG_FILE
        ready_log.info("kquorum node %d ready: %s; log %s", config.node_id, " ".join(places), log_file)

    def _handle_signal(self, number: signal.Signals) -> None:
        if self._ending.done():
            os._exit(128 + number)
        notable_log.info("stopping after %s", number.name)
        self._ending.set_result(None)

    def _handle_fatal(self, error: Exception) -> None:
        """The driver has put it into the log; the code that ends the process prints it on the terminal."""
        if self._ending.done():
            log.error("while stopping: %s", error)
        else:
            self._ending.set_exception(error)
