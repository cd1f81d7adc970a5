"""One log makes one image: pictures of nodes that differ, or show what cannot be, are named."""

from typing import Any

import pytest

from kquorum.wire.proto import inspect_pb2 as pb
from tests.jepsen.checkers.images import PICTURE, Images
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.pictures import picture_of
from tests.jepsen.workloads.log_order import SameImage


class ScriptedHistory:
    def __init__(self) -> None:
        self.ops: list[Op] = []

    def picture(self, node: int, offset: int, digest: str = "a", *problems: str) -> "ScriptedHistory":
        value = {"observer": node, "offset": offset, "epoch": 1, "digest": digest, "problems": list(problems)}
        return self._did(node, value, OpType.OK)

    def fails(self, node: int) -> "ScriptedHistory":
        return self._did(node, None, OpType.FAIL)

    def _did(self, node: int, value: Any, kind: OpType) -> "ScriptedHistory":
        for each, told in ((OpType.INVOKE, None), (kind, value)):
            self.ops.append(Op(type=each, f=PICTURE, value=told, process=node, node=node, final=True))
        return self

    def judged(self) -> Results:
        return Images({op.node for op in self.ops if op.node}).check(History(self.ops))


def test_one_image_on_all_nodes_is_valid() -> None:
    results = ScriptedHistory().picture(1, 9, "x").picture(1, 10).picture(2, 10).picture(11, 12).judged()
    assert (results[VALID_KEY], results["pictures"]) == (Verdict.VALID, 4)


def test_two_images_of_one_offset_differ() -> None:
    results = ScriptedHistory().picture(1, 10, "a").picture(2, 10, "b").picture(2, 11, "a").judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["differ"] == [
        {"node": 2, "offset": 10, "index": 3, "unlike": {"node": 1, "offset": 10, "index": 1}}
    ]


def test_an_image_that_cannot_be_is_invalid() -> None:
    results = ScriptedHistory().picture(1, 10, "a", "t-0: the leader 2 is fenced").judged()
    assert (results[VALID_KEY], results["impossible_count"]) == (Verdict.INVALID, 1)


def test_a_node_that_shows_an_older_image_has_gone_back() -> None:
    results = ScriptedHistory().picture(1, 10).picture(2, 9).picture(1, 9).judged()
    assert (results[VALID_KEY], results["gone_back_count"]) == (Verdict.INVALID, 1)


def test_an_image_behind_what_the_node_had_shown_of_its_log_has_gone_back() -> None:
    scripted = ScriptedHistory().picture(1, 9)
    look = {"observer": 1, "records": [[10, 1, 77, None]]}
    observed = [
        Op(type=kind, f="observe", value=look, process=5, node=1, final=True)
        for kind in (OpType.INVOKE, OpType.OK)
    ]
    scripted.ops = [*scripted.ops, *observed]
    assert scripted.judged()["gone_back_count"] == 0
    results = scripted.picture(1, 9).judged()
    assert (results[VALID_KEY], results["gone_back_count"]) == (Verdict.INVALID, 1)


def test_images_that_never_became_the_same_leave_doubt() -> None:
    assert ScriptedHistory().picture(1, 10, "a").picture(2, 11, "b").judged()[VALID_KEY] is Verdict.UNKNOWN
    results = ScriptedHistory().picture(1, 10).fails(2).judged()
    assert (results[VALID_KEY], results["nodes_without_picture"]) == (Verdict.UNKNOWN, [2])


def test_an_image_that_all_have_shown_is_enough_though_some_were_asked_later() -> None:
    results = ScriptedHistory().picture(1, 10).picture(2, 9, "b").picture(2, 10).picture(2, 11, "b").judged()
    assert (results[VALID_KEY], results["is_agreed"]) == (Verdict.VALID, True)


def test_nodes_are_asked_until_all_have_shown_the_same() -> None:
    same = SameImage((1, 2))
    shown = (
        ScriptedHistory()
        .picture(1, 5)
        .picture(2, 6, "b")
        .picture(1, 6, "c")
        .picture(2, 7)
        .picture(1, 8, "c")
        .ops[1::2]
    )
    assert [same.is_shown_with(op) for op in shown] == [False, False, False, True, True]


def part(topic: str = "t", place: int = 0, **more: Any) -> pb.Partition:
    values: dict[str, Any] = {"leader": 11, "replicas": [11, 12], "isr": [11], **more}
    return pb.Partition(topic=topic, topic_id=f"id of {topic}", partition_id=place, **values)


def image(*parts: pb.Partition, fenced: bool = False, node: int = 1, ids: str = "") -> list[pb.ImageChunk]:
    """Each partition in a chunk of its own."""
    header = pb.ImageHeader(
        provenance=pb.Provenance(offset=7, epoch=2, timestamp_ms=node),
        node_id=node,
        brokers=[pb.Broker(id=11, epoch=3, fenced=fenced), pb.Broker(id=12)],
        topic_count=len({each.topic for each in parts}),
        partition_count=len(parts),
    )
    chunks = [pb.ImageChunk(header=header)]
    for each in parts:
        topic = pb.Topic(name=each.topic, id=ids or each.topic_id, partitions=[each])
        chunks.append(pb.ImageChunk(topics=pb.TopicChunk(topics=[topic])))
    return chunks


def digest(chunks: list[pb.ImageChunk]) -> str:
    return str(picture_of(1, chunks)["digest"])


def test_what_is_the_nodes_own_is_no_part_of_the_digest() -> None:
    one, other = image(part(place=0), part(place=1)), image(part(place=1), part(place=0), node=2)
    assert digest(one) == digest(other)
    assert picture_of(1, one) | {"digest": ""} == {
        "observer": 1, "offset": 7, "epoch": 2, "digest": "", "problems": []
    }  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        image(part(partition_epoch=1)),
        image(part(isr=[11, 12])),
        image(part(leader_epoch=1)),
        image(part(), fenced=True),
        image(part(), part("u")),
        image(part(), ids="another"),
    ],
)
def test_everything_else_is(changed: list[pb.ImageChunk]) -> None:
    assert digest(changed) != digest(image(part()))


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        (image(part(), fenced=True), "fenced or not registered"),
        (image(part(leader=13, isr=[13], replicas=[13])), "fenced or not registered"),
        (image(part(leader=12)), "not in sync"),
        (image(part(isr=[11, 13])), "beyond the replicas"),
        (image(part(isr=[11, 11])), "in-sync"),
        (image(part(), part("u"), ids="one"), "have one id"),
        (image(part(), part()), "2 times"),
    ],
)
def test_what_cannot_be_is_named(chunks: list[pb.ImageChunk], said: str) -> None:
    assert said in picture_of(1, chunks)["problems"][0]


def test_a_partition_without_a_leader_may_keep_its_in_sync_set() -> None:
    assert picture_of(1, image(part(leader=-1), fenced=True))["problems"] == []
