"""How clients of one listener see the brokers, in columns: the rules of `metadata_cache.cache` for many at once."""

from collections.abc import Iterable
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.image.cluster import ClusterImage
from kquorum.metadata.image.directories import is_online
from kquorum.metadata.image.partitions import Column

Flags = NDArray[np.bool_]
Places = NDArray[np.intp]
# What of the brokers an answer's partitions depend on; equal states, equal answers.
ViewState = tuple[tuple[int, bool, bool, tuple[UUID, ...]], ...]


def view_state(cluster: ClusterImage, listener_name: str) -> ViewState:
    """Of each registered broker, by id: whether it has the listener, whether it is fenced, and its directories."""
    return tuple(
        (broker_id, broker.end_point(listener_name) is not None, broker.fenced, broker.log_dirs)
        for broker_id, broker in sorted(cluster.brokers.items())
    )


class ClusterView:
    """A broker is named by its place in the order of the ids; the last place stands for all unregistered brokers.

    Shapes, for n registered brokers: `is_registered`, `has_listener` and `is_reachable` are (n + 1,).
    """

    def __init__(self, state: ViewState) -> None:
        self.state = state
        self._ids = np.array([broker_id for broker_id, *_ in state], dtype=np.int64)
        self._log_dirs = [log_dirs for *_, log_dirs in state]
        self.is_registered = np.array([*(True for _ in state), False])
        self.has_listener = np.array([*(has_listener for _, has_listener, *_ in state), False])
        self.is_reachable = np.array(
            [*(has_listener and not fenced for _, has_listener, fenced, _ in state), False]
        )
        # Which directory is online at which broker: a column each, made when the directory is first met.
        self._numbers: dict[UUID, int] = {}
        self._columns: list[list[bool]] = []
        self._is_online: Flags = np.zeros((len(state) + 1, 0), dtype=np.bool_)

    def places(self, broker_ids: Column) -> Places:
        """Of any shape; padding is no broker's id."""
        if not len(self._ids):
            return np.zeros(broker_ids.shape, dtype=np.intp)
        places = np.minimum(self._ids.searchsorted(broker_ids), len(self._ids) - 1)
        found: Places = np.where(self._ids[places] == broker_ids, places, len(self._ids))
        return found

    def directory_numbers(self, directory_ids: Iterable[UUID]) -> list[int]:
        """Numbers of these directories for `is_online`."""
        return [self._number(each) for each in directory_ids]

    def is_online(self, places: Places, directories: Places) -> Flags:
        """Whether the directory of this number is online at the broker of this place, for each."""
        if self._is_online.shape[1] < len(self._columns):
            self._is_online = np.array(self._columns, dtype=np.bool_).T
        online: Flags = self._is_online[places, directories]
        return online

    def _number(self, directory_id: UUID) -> int:
        number = self._numbers.get(directory_id)
        if number is None:
            number = self._numbers[directory_id] = len(self._columns)
            online = [is_online(directory_id, log_dirs) for log_dirs in self._log_dirs]
            self._columns.append([*online, False])
        return number
