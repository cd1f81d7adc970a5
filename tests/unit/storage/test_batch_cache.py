"""The cache keeps to its bound, the batches that it has let go included."""

from kquorum.storage.batch_cache import BatchCache
from kquorum.wire.log_batch import build_batch


def test_evicted_batches_give_their_memory_back() -> None:
    cache = BatchCache(capacity_bytes=10_000)
    held = [build_batch(offset, 1, 1, [(None, bytes(3_000))]) for offset in range(40)]
    for batch in held:
        cache.append(batch)
    still_referenced = [batch for batch in held if any(batch is kept for kept in cache._batches)]
    assert sum(len(batch.data) for batch in still_referenced) < 3 * 10_000
