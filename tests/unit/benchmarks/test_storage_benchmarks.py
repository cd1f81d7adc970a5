"""The benchmarks of images, decoding and replay do what they say, at a size that takes no time."""

import json
from typing import Any

import pytest

from benchmarks import big_image, decode_records, message_codec, replay_memory
from kquorum.metadata.image.image import Provenance
from kquorum.metadata.image.records import image_values
from tests.support.image_records import image_from_values


def result(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)["results"]


def test_the_big_image_is_an_image_like_any_other() -> None:
    image = big_image.big_image(3, 20)
    assert [len(topic.partitions) for topic in image.topics.by_name.values()] == [20, 20, 20]
    assert all(
        state.leader in state.isr
        for topic in image.topics.by_id.values()
        for _, state in topic.partitions.items()
    )
    loaded = image_from_values(image_values(image), Provenance())
    assert (loaded.topics, loaded.features) == (image.topics, image.features)


def test_big_image(capsys: pytest.CaptureFixture[str]) -> None:
    big_image.main(["--topics", "3", "--partitions", "20", "--json"])
    found = result(capsys)
    assert [row["codec"] for row in found["snapshot"]] == ["lz4", "none"]
    assert all(row["load_s"] > 0 and row["peak_mb_beyond_start"] > 0 for row in found["snapshot"])


def test_message_codec(capsys: pytest.CaptureFixture[str]) -> None:
    message_codec.main(["--fast", "--json"])
    rows = result(capsys)["messages"]
    assert [row["work"] for row in rows] == ["read", "encode", "make and encode"] * len(message_codec.CASES)
    assert all(row["bytes"] > 0 and row["typed_us"] > 0 and row["kio_us"] > 0 for row in rows)


def test_decode_records(capsys: pytest.CaptureFixture[str]) -> None:
    decode_records.main(["--records", "2500", "--json"])
    rows = result(capsys)["decoding"]
    assert [(row["batches"], row["records"]) for row in rows] == [(3, 2500), (3, 2500), (250, 250)]


def test_replay_memory(capsys: pytest.CaptureFixture[str]) -> None:
    replay_memory.main(["--records", "12000", "--json"])
    rows = result(capsys)["replay"]
    assert [row["replay"] for row in rows] == ["MetadataLoader", "kquorum log verify"]
    assert all(row["peak_mb"] > 5 for row in rows)
