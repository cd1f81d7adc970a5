"""The length that stands before an array in a message, for those who put messages together from encoded parts."""

from kquorum.wire.primitives import write_uvarint


def array_length(count: int, *, is_flexible: bool) -> bytes:
    """Of an array that is not null: an int32, or in flexible versions a uvarint of one more (KIP-482)."""
    if not is_flexible:
        return count.to_bytes(4, "big")
    out = bytearray()
    write_uvarint(out, count + 1)
    return bytes(out)
