"""HTTP/2 frames, written by hand."""

from kquorum.network.http2 import (
    PREFACE,
    Flag,
    FrameType,
)

CALL, MESSAGE = b"\x83\x86\x04\x0a/v1.A/Call", b"m" * 12


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


SETTINGS = frame(FrameType.SETTINGS, 0, 0, bytes(6))


SETTINGS_ACK = frame(FrameType.SETTINGS, Flag.ACK, 0)


OPENING = PREFACE + SETTINGS


def call(stream: int) -> bytes:
    return frame(FrameType.HEADERS, Flag.END_HEADERS, stream, CALL) + frame(
        FrameType.DATA, Flag.END_STREAM, stream, MESSAGE
    )
