"""Tells a file that is no log at all from a log that is damaged: the first is the user's slip, the second a finding."""

from kquorum.spark_replay.sources import is_log_name
from kquorum.wire.errors import BufferUnderflow, CorruptBatch
from kquorum.wire.record_batch import HEADER_BYTES, MAGIC, read_batch_header

_MAGIC_POSITION = 16


def why_not_a_log(name: str, buffer: memoryview) -> str | None:
    """What shows that the file `name` is not a Kafka log or snapshot; None if it is one, however damaged."""
    if len(buffer) == 0:
        return None if is_log_name(name) else "it is empty"
    if not any(bytes(buffer[:HEADER_BYTES])):
        return None if is_log_name(name) else "it begins with zeros"
    try:
        read_batch_header(buffer)
    except CorruptBatch as error:
        return f"it does not begin with a record batch ({error.reason})"
    except BufferUnderflow as error:
        has_magic = len(buffer) > _MAGIC_POSITION and buffer[_MAGIC_POSITION] == MAGIC
        may_be_torn = is_log_name(name) and (has_magic or len(buffer) <= _MAGIC_POSITION)
        return None if may_be_torn else f"it is too short for one record batch ({error.reason})"
    return None
