"""Keeps the metadata out of the garbage collector's sight as it grows.

A full collection goes through all objects that were made since the last `gc.freeze`, and holds the node meanwhile: 2 µs
for a topic, 9 for an entity with quotas. What a node loads when it starts is frozen then. What committed records add
later is frozen here.
"""

import gc
from collections.abc import Callable, Sequence
from typing import Final

from kquorum.wire.log_batch import LogBatch

# Their objects take a full collection some 20 ms. Only records count: a freeze keeps for good what only garbage
# collection would free later, so clients must not be able to cause one as often as they like. Connections are freed
# without it.
RECORDS_FOR_A_FREEZE: Final = 10_000
# So many objects more than at the last collection, and the collector runs: some 2 ms. A request of a batch of 256 keeps
# some fifty objects until it is answered; with Python's 700 a tenth of a busy leader's time went into looking at them.
YOUNG_OBJECTS: Final = 20_000


def freeze() -> None:
    """The young garbage goes first, for it would stay for good."""
    gc.collect(1)
    gc.freeze()


def freeze_what_is_loaded() -> None:
    """What was loaded so far stays: the collector is not to go through all of it while requests wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


class StateFreeze:
    def __init__(self, freeze_now: Callable[[], None] = freeze) -> None:
        self._freeze_now = freeze_now
        self._records = 0

    def note(self, batches: Sequence[LogBatch]) -> None:
        """These batches were committed, and the state has what they add."""
        self._records += sum(batch.last_offset - batch.base_offset + 1 for batch in batches)
        if self._records >= RECORDS_FOR_A_FREEZE:
            self._records = 0
            self._freeze_now()
