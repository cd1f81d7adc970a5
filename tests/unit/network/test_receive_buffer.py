"""How long a frame may take: time in which the server does not read does not count."""

from kquorum.network.receive_buffer import ReceiveBuffer

HALF_A_FRAME = (1000).to_bytes(4, "big") + bytes(100)
TIMEOUT_MS = 30_000


def begun_at(now_s: float) -> ReceiveBuffer:
    intake = ReceiveBuffer(10_000, TIMEOUT_MS)
    assert not intake.feed(HALF_A_FRAME, now_s)
    return intake


def test_a_frame_that_was_begun_has_so_long_and_no_longer() -> None:
    intake = begun_at(100.0)
    assert not intake.is_overdue(129.0)
    assert intake.is_overdue(131.0)


def test_a_pause_gives_its_time_back() -> None:
    intake = begun_at(100.0)
    intake.pause(110.0)
    intake.resume(500.0)
    assert not intake.is_overdue(519.0), "ten seconds had gone before the pause"
    assert intake.is_overdue(521.0)


def test_two_pauses_give_both_their_times_back() -> None:
    intake = begun_at(0.0)
    for paused_s, resumed_s in ((5.0, 50.0), (55.0, 100.0)):
        intake.pause(paused_s)
        intake.resume(resumed_s)
    assert not intake.is_overdue(119.0)
    assert intake.is_overdue(121.0)
