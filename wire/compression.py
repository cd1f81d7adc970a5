"""The compression codecs of record batches: all are read, none and lz4 are written.

gzip is the standard library's, lz4 is the package `lz4`, snappy and zstd are `cramjam`.
"""

import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

import cramjam
import lz4.frame

from kquorum.wire.errors import DecodeError

_GZIP_WINDOW_BITS: Final = 31
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_FIRST_ZSTD_BYTES: Final = 64 * 1024
_ZSTD_SPACE_IS_TOO_SMALL: Final = "failed to write whole buffer"
# Kafka writes one; each costs a copy of all that follow.
_GZIP_MEMBERS_MAX: Final = 100


class CompressionCodec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: CompressionCodec, data: bytes) -> bytes:
    """Compress `data` with NONE or LZ4; ValueError for the codecs that we only read.

    The lz4 frame has the parameters of Kafka's: independent blocks of 64 KiB, no checksums, no content size.
    """
    if codec == CompressionCodec.NONE:
        return data
    if codec != CompressionCodec.LZ4:
        raise ValueError(f"batches are not written with codec {codec.name}; use NONE or LZ4")
    compressed: bytes = lz4.frame.compress(
        data,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
        store_size=False,
    )
    return compressed


def decompress(codec: CompressionCodec, data: bytes, limit: int) -> bytes:
    """Decompress `data`. Raises DecodeError if it is malformed or holds more than `limit` bytes."""
    if codec == CompressionCodec.NONE:
        return data
    try:
        plain = _DECOMPRESSORS[codec](data, limit)
    except (zlib.error, RuntimeError, ValueError, cramjam.DecompressionError) as error:
        raise DecodeError(f"the {codec.name} data are damaged: {error}") from error
    if len(plain) > limit:
        raise _too_large(codec, limit)
    return plain


def _gunzip(data: bytes, limit: int) -> bytes:
    plain, members = bytearray(), 0
    while data:
        members += 1
        if members > _GZIP_MEMBERS_MAX:
            raise ValueError(f"there are more than {_GZIP_MEMBERS_MAX} members")
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        plain += member.decompress(data, limit + 1 - len(plain))
        if len(plain) > limit:
            raise _too_large(CompressionCodec.GZIP, limit)
        if not member.eof:
            raise ValueError("the stream is cut short")
        data = member.unused_data
    return bytes(plain)


def _unsnappy(data: bytes, limit: int) -> bytes:
    """Both forms that Kafka's readers take: the framing of snappy-java (xerial) and a bare block."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(data, limit, 0)
    plain = bytearray()
    position = _XERIAL_HEADER_BYTES
    if len(data) < position:
        raise ValueError("the header is cut short")
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise ValueError(f"a block of {size} bytes in {max(len(data) - position, 0)} bytes")
        plain += _unsnappy_block(data[position : position + size], limit, len(plain))
        position += size
    return bytes(plain)


def _unsnappy_block(block: bytes, limit: int, already: int) -> bytes:
    if already + cramjam.snappy.decompress_raw_len(block) > limit:
        raise _too_large(CompressionCodec.SNAPPY, limit)
    return bytes(cramjam.snappy.decompress_raw(block))


def _unlz4(data: bytes, limit: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    plain: bytes = frame.decompress(data, max_length=limit + 1)
    if len(plain) <= limit and not frame.eof:
        raise ValueError("the frame is cut short")
    return plain


def _unzstd(data: bytes, limit: int) -> bytes:
    # A frame that Kafka writes does not say how long its content is, and the library fills only a space of fixed size:
    # so try ever larger ones. What is damaged is not tried again, or a few bytes would cost 85 MiB each time.
    size = min(limit, max(_FIRST_ZSTD_BYTES, 8 * len(data)))
    while True:
        plain = bytearray(size)
        try:
            return bytes(plain[: cramjam.zstd.decompress_into(data, plain)])
        except cramjam.DecompressionError as error:
            if _ZSTD_SPACE_IS_TOO_SMALL not in str(error):
                raise
            if size == limit:
                raise _too_large(CompressionCodec.ZSTD, limit) from error
        size = min(limit, 4 * size)


def _too_large(codec: CompressionCodec, limit: int) -> DecodeError:
    return DecodeError(f"the {codec.name} data hold more than {limit} bytes")


_DECOMPRESSORS: Final[Mapping[CompressionCodec, Callable[[bytes, int], bytes]]] = {
    CompressionCodec.GZIP: _gunzip,
    CompressionCodec.SNAPPY: _unsnappy,
    CompressionCodec.LZ4: _unlz4,
    CompressionCodec.ZSTD: _unzstd,
}
