"""The survey of a batch's records, by columns and one by one, against the parser that builds each record."""

from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from kquorum.wire import record_survey
from kquorum.wire.data_batch import Record, append_record
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_parsing import parse_records
from kquorum.wire.record_survey import RecordSurvey, record_spans, renumbered, survey_records

BYTES = st.none() | st.binary(max_size=12) | st.integers(60, 20_000).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3).map(tuple)
DELTAS = st.integers(-3, 200) | st.integers(-(2**62), 2**62)


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records as they lie in a batch, and how many."""
    count = draw(st.integers(0, 9))
    is_sequential = draw(st.booleans())
    out = bytearray()
    for index in range(count):
        offset = index if is_sequential else draw(st.integers(-(2**31), 2**31 - 1))
        has_headers = draw(st.integers(0, 5)) == 0
        record = Record(offset, draw(DELTAS), draw(BYTES), draw(BYTES), draw(HEADERS) if has_headers else ())
        append_record(out, record, 0, 0)
    return bytes(out), count


def surveyed(data: bytes, count: int, *, by_columns: bool) -> RecordSurvey | None:
    """None where the records are refused."""
    shifted = b"?" + data
    with patch.object(record_survey, "_BY_COLUMNS_FROM", 1 if by_columns else 1 << 40):
        try:
            return survey_records(shifted, 1, len(shifted), count)
        except DecodeError:
            return None


def of_parsed(data: bytes, count: int) -> RecordSurvey | None:
    try:
        records = parse_records(data, count, 0, 0, None)
    except DecodeError as error:
        # The survey does not read the names of headers: only a reader can object to them.
        return surveyed(data, count, by_columns=False) if "UTF-8" in str(error) else None
    times = [record.timestamp_ms for record in records] or [0]
    return RecordSurvey(
        min(times),
        max(times),
        times.index(max(times)),
        all(record.key is not None for record in records),
        [record.offset for record in records] == list(range(count)),
    )


@given(payloads())
def test_sound_records(payload: tuple[bytes, int]) -> None:
    data, count = payload
    expected = of_parsed(data, count)
    assert expected is not None
    assert surveyed(data, count, by_columns=True) == expected
    assert surveyed(data, count, by_columns=False) == expected


@given(payloads(), st.data())
@example((b"\x0c\0\0\0\1\1\0", 1), None)
@example((b"\x0d\0\0\0\1\1\0", 1), None)
@example((b"\xff\1" + bytes(3) + b"\xf2\1" + bytes(120), 1), None)
def test_changed_records(payload: tuple[bytes, int], data: st.DataObject | None) -> None:
    """Whatever is changed, both ways of the survey agree with the parser on what is refused."""
    whole, count = payload
    changed = bytearray(whole)
    if data is not None:
        for _ in range(data.draw(st.integers(0, 3))):
            if changed:
                at = data.draw(st.integers(0, min(len(changed), 60) - 1))
                changed[at] = data.draw(st.sampled_from([0, 1, 2, 3, 12, 127, 128, 129, 255]))
        count += data.draw(st.integers(-1, 1))
        changed = changed[: len(changed) - data.draw(st.integers(0, 2))]
    expected = of_parsed(bytes(changed), count) if count >= 0 else None
    for by_columns in (True, False):
        if count >= 0:
            assert surveyed(bytes(changed), count, by_columns=by_columns) == expected


@given(st.binary(max_size=80), st.integers(0, 10))
def test_garbage(data: bytes, count: int) -> None:
    expected = of_parsed(data, count)
    assert surveyed(data, count, by_columns=True) == expected
    assert surveyed(data, count, by_columns=False) == expected


@given(payloads(), st.integers(-(2**40), 2**40))
def test_renumbered_records_are_the_same_but_for_their_numbers(
    payload: tuple[bytes, int], base_delta: int
) -> None:
    data, count = payload
    spans = record_spans(data, 0, len(data), count)
    before = parse_records(data, count, 0, 0, None)
    after = parse_records(renumbered(data, spans, base_delta), count, 0, base_delta, None)
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in after] == [
        (r.timestamp_ms, r.key, r.value, r.headers) for r in before
    ]
    assert [record.offset for record in after] == list(range(count))
    assert [span.has_key for span in spans] == [record.key is not None for record in before]
