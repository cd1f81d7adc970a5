"""The compression codecs of record batches, read and written.

gzip is the standard library's, lz4 is the package `lz4`, snappy and zstd are `cramjam`.
"""

import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

import cramjam
import lz4.frame

from kquorum.wire.errors import BufferUnderflow, DecodeError, TooMuchData

_GZIP_WINDOW_BITS: Final = 31
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
# The version of the framing and the oldest one that can read it, then blocks of so many plain bytes.
_XERIAL_VERSIONS: Final = b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
# Java's default, which `compression.gzip.level` = -1 asks for.
_GZIP_LEVEL: Final = -1
_LZ4_LEVEL: Final = 0
_ZSTD_LEVEL: Final = 3
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


def compress(codec: CompressionCodec, data: bytes, level: int | None = None) -> bytes:
    """Compress `data` as Kafka's writers do, with the codec's own level if none is given.

    Levels (KIP-780): gzip -1 to 9, lz4 1 to 17 and 0 for the fast mode, zstd -131072 to 22; snappy has none.
    """
    if codec == CompressionCodec.NONE:
        return data
    return _COMPRESSORS[codec](data, level)


def _gzip(data: bytes, level: int | None) -> bytes:
    member = zlib.compressobj(_GZIP_LEVEL if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
    return member.compress(data) + member.flush()


def _snappy(data: bytes, _level: int | None) -> bytes:
    """The framing of snappy-java (xerial), which Kafka's Java clients write."""
    parts = [_XERIAL_MAGIC, _XERIAL_VERSIONS]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _lz4(data: bytes, level: int | None) -> bytes:
    """A frame with the parameters of Kafka's: independent blocks of 64 KiB, no checksums, no content size."""
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=_LZ4_LEVEL if level is None else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
        store_size=False,
    )
    return compressed


def _zstd(data: bytes, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL if level is None else level))


def decompress(codec: CompressionCodec, data: bytes, limit: int) -> bytes:
    """Decompress `data`. Raises TooMuchData if it holds more than `limit` bytes, BufferUnderflow if a gzip or lz4
    stream ends early, DecodeError if it is malformed."""
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
    plain, members = b"", 0
    while data:
        members += 1
        if members > _GZIP_MEMBERS_MAX:
            raise ValueError(f"there are more than {_GZIP_MEMBERS_MAX} members")
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        part = member.decompress(data, limit + 1 - len(plain))
        if len(plain) + len(part) > limit:
            raise _too_large(CompressionCodec.GZIP, limit)
        if not member.eof:
            raise BufferUnderflow("the GZIP data are damaged: the stream is cut short")
        # Copied only where there is more than one member.
        plain = plain + part if plain else part
        data = member.unused_data
    return plain


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
        raise BufferUnderflow("the LZ4 data are damaged: the frame is cut short")
    return plain


def _unzstd(data: bytes, limit: int) -> bytes:
    # A frame that Kafka writes does not say how long its content is, and the library fills only a space of fixed size:
    # so try a small one, then the largest. Of its pages only those that are written cost anything, and what is damaged
    # is not tried again.
    for size in (min(limit, max(_FIRST_ZSTD_BYTES, 8 * len(data))), limit):
        plain = bytearray(size)
        try:
            filled = cramjam.zstd.decompress_into(data, plain)
        except cramjam.DecompressionError as error:
            if _ZSTD_SPACE_IS_TOO_SMALL not in str(error):
                raise
            continue
        with memoryview(plain) as view:
            return bytes(view[:filled])
    raise _too_large(CompressionCodec.ZSTD, limit)


def _too_large(codec: CompressionCodec, limit: int) -> TooMuchData:
    return TooMuchData(f"the {codec.name} data hold more than {limit} bytes")


_DECOMPRESSORS: Final[Mapping[CompressionCodec, Callable[[bytes, int], bytes]]] = {
    CompressionCodec.GZIP: _gunzip,
    CompressionCodec.SNAPPY: _unsnappy,
    CompressionCodec.LZ4: _unlz4,
    CompressionCodec.ZSTD: _unzstd,
}
_COMPRESSORS: Final[Mapping[CompressionCodec, Callable[[bytes, int | None], bytes]]] = {
    CompressionCodec.GZIP: _gzip,
    CompressionCodec.SNAPPY: _snappy,
    CompressionCodec.LZ4: _lz4,
    CompressionCodec.ZSTD: _zstd,
}
