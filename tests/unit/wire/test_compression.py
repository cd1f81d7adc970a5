"""Every codec is read; none and lz4 are written, lz4 with the frame that Kafka's reader accepts."""

import contextlib
import gzip
import struct

import cramjam
import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.wire.compression import CompressionCodec, compress, decompress
from kquorum.wire.errors import DecodeError
from tests.support.batches import xerial

LIMIT = 1 << 20
PLAIN = b"metadata log " * 9000  # more than one lz4 or snappy block of 64 or 32 KiB
READ_CODECS = [CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4, CompressionCodec.ZSTD]


COMPRESSED = [
    (CompressionCodec.NONE, PLAIN),
    (CompressionCodec.GZIP, gzip.compress(PLAIN)),
    (CompressionCodec.GZIP, gzip.compress(PLAIN[:100]) + gzip.compress(PLAIN[100:])),
    (CompressionCodec.SNAPPY, xerial(PLAIN)),
    (CompressionCodec.SNAPPY, bytes(cramjam.snappy.compress_raw(PLAIN))),
    (CompressionCodec.LZ4, lz4.frame.compress(PLAIN, block_linked=False)),
    (
        CompressionCodec.LZ4,
        lz4.frame.compress(PLAIN, block_size=lz4.frame.BLOCKSIZE_MAX4MB, content_checksum=True),
    ),
    (CompressionCodec.ZSTD, bytes(cramjam.zstd.compress(PLAIN))),
]


@pytest.mark.parametrize(("codec", "data"), COMPRESSED)
def test_every_codec_is_read(codec: CompressionCodec, data: bytes) -> None:
    assert decompress(codec, data, LIMIT) == PLAIN
    assert decompress(codec, data, len(PLAIN)) == PLAIN


@pytest.mark.parametrize(("codec", "data"), [pair for pair in COMPRESSED if pair[0] in READ_CODECS])
def test_more_than_the_limit_is_refused(codec: CompressionCodec, data: bytes) -> None:
    with pytest.raises(DecodeError, match=f"more than {len(PLAIN) - 1} bytes"):
        decompress(codec, data, len(PLAIN) - 1)


@pytest.mark.parametrize(("codec", "data"), [pair for pair in COMPRESSED if pair[0] in READ_CODECS])
def test_a_cut_stream_is_refused(codec: CompressionCodec, data: bytes) -> None:
    for length in (len(data) - 1, len(data) // 2, 20, 5):
        with pytest.raises(DecodeError, match=f"the {codec.name} data are damaged"):
            decompress(codec, data[:length], LIMIT)


@pytest.mark.parametrize("codec", READ_CODECS)
@settings(max_examples=40, deadline=None)
@given(data=st.binary(min_size=1, max_size=80))
def test_garbage_never_crashes(codec: CompressionCodec, data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert len(decompress(codec, data, 4096)) <= 4096


def test_a_zstd_bomb_is_refused() -> None:
    bomb = bytes(cramjam.zstd.compress(bytes(1 << 26)))
    assert len(bomb) < 10_000
    with pytest.raises(DecodeError, match="more than"):
        decompress(CompressionCodec.ZSTD, bomb, LIMIT)


def test_lz4_is_written_with_kafkas_frame_header() -> None:
    assert compress(CompressionCodec.LZ4, PLAIN)[:7].hex() == "04224d18604082"
    assert compress(CompressionCodec.LZ4, PLAIN)[-4:] == bytes(4)  # the end mark, and no content checksum
    (first_block_bytes,) = struct.unpack_from("<I", compress(CompressionCodec.LZ4, PLAIN), 7)
    plain = lz4.frame.decompress(compress(CompressionCodec.LZ4, PLAIN))
    assert plain == PLAIN
    assert first_block_bytes < 64 * 1024


@given(st.binary(max_size=3000))
def test_what_is_written_is_read(plain: bytes) -> None:
    for codec in (CompressionCodec.NONE, CompressionCodec.LZ4):
        assert decompress(codec, compress(codec, plain), LIMIT) == plain


@pytest.mark.parametrize("codec", [CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.ZSTD])
def test_other_codecs_are_not_written(codec: CompressionCodec) -> None:
    with pytest.raises(ValueError, match="use NONE or LZ4"):
        compress(codec, PLAIN)
