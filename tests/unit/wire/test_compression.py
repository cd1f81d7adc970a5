"""Every codec is read and written, with the frames that Kafka's readers accept."""

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
    (CompressionCodec.GZIP, gzip.compress(PLAIN, mtime=0)),
    (CompressionCodec.GZIP, gzip.compress(PLAIN[:100], mtime=0) + gzip.compress(PLAIN[100:], mtime=0)),
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
    for codec in CompressionCodec:
        assert decompress(codec, compress(codec, plain), LIMIT) == plain


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        *((CompressionCodec.GZIP, level) for level in (-1, 1, 9)),
        *((CompressionCodec.LZ4, level) for level in (1, 9, 17)),
        *((CompressionCodec.ZSTD, level) for level in (-131072, 1, 3, 22)),
    ],
)
def test_each_level_of_kafkas_configs_is_taken(codec: CompressionCodec, level: int) -> None:
    assert decompress(codec, compress(codec, PLAIN, level), LIMIT) == PLAIN


def test_a_higher_level_compresses_more() -> None:
    words = b"".join(b"%d " % (number * number % 997) for number in range(20_000))
    for codec, levels in {
        CompressionCodec.GZIP: (1, 9),
        CompressionCodec.LZ4: (1, 12),
        CompressionCodec.ZSTD: (-100, 19),
    }.items():
        low, high = (len(compress(codec, words, level)) for level in levels)
        assert high < low, codec


def test_gzip_is_written_as_one_member_with_a_plain_header() -> None:
    data = compress(CompressionCodec.GZIP, PLAIN)
    assert data[:8] == b"\x1f\x8b\x08" + bytes(5), "no name, no comment, no time"
    assert gzip.decompress(data) == PLAIN


def test_snappy_is_written_in_the_blocks_of_snappy_java() -> None:
    assert compress(CompressionCodec.SNAPPY, PLAIN) == xerial(PLAIN)
    assert compress(CompressionCodec.SNAPPY, b"") == xerial(b"")
