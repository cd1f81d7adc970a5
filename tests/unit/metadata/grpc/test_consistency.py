"""What linearizable, committed and local reads see, and who serves them."""

import grpc

from kquorum.wire.proto import inspect_pb2 as pb
from tests.support.grpc_harness import failure_of, run, serving, take_all
from tests.support.grpc_source import FakeSource, topic


def source_with_a_proposal() -> FakeSource:
    """Offset 0 is committed, offset 1 is not; the leader's newest image has both topics."""
    source = FakeSource()
    source.commit(topic("orders", 1))
    both = FakeSource()
    both.commit(topic("orders", 1), topic("drafts", 2))
    source.append(topic("drafts", 2))
    source.proposed_image = both.image
    return source


def names(chunks: list[pb.ImageChunk]) -> list[str]:
    return [item.name for chunk in chunks for item in chunk.topics.topics]


def test_an_image_holds_what_its_promise_says() -> None:
    async def main() -> dict[int, list[str]]:
        async with serving(source_with_a_proposal()) as rig:
            return {
                promise: names(await take_all(rig.stub.Image(pb.ImageRequest(consistency=promise))))
                for promise in pb.Consistency.values()
            }

    assert run(main) == {
        pb.CONSISTENCY_UNSPECIFIED: ["orders"],
        pb.LINEARIZABLE: ["orders"],
        pb.COMMITTED: ["orders"],
        pb.LOCAL: ["drafts", "orders"],
    }


def test_a_log_is_read_as_far_as_its_promise_says() -> None:
    async def main() -> dict[int, list[int]]:
        async with serving(source_with_a_proposal()) as rig:
            return {
                promise: [
                    record.offset
                    for record in await take_all(rig.stub.ReadLog(pb.ReadLogRequest(consistency=promise)))
                ]
                for promise in pb.Consistency.values()
            }

    assert run(main) == {
        pb.CONSISTENCY_UNSPECIFIED: [0],
        pb.LINEARIZABLE: [0],
        pb.COMMITTED: [0],
        pb.LOCAL: [0, 1],
    }


def test_leadership_is_confirmed_for_linearizable_reads_only() -> None:
    async def main() -> list[int]:
        seen = []
        async with serving(source_with_a_proposal()) as rig:
            for promise in (pb.COMMITTED, pb.LOCAL, pb.LINEARIZABLE):
                await take_all(rig.stub.Image(pb.ImageRequest(consistency=promise)))
                await take_all(rig.stub.ReadLog(pb.ReadLogRequest(consistency=promise)))
                seen.append(rig.source.confirmations)
        return seen

    assert run(main) == [0, 0, 2]


def test_another_node_refuses_a_linearizable_read_and_names_the_leader() -> None:
    async def main() -> list[grpc.aio.AioRpcError]:
        source = source_with_a_proposal()
        source.is_leader = False
        async with serving(source) as rig:
            calls = (
                rig.stub.Image(pb.ImageRequest(consistency=pb.LINEARIZABLE)),
                rig.stub.ReadLog(pb.ReadLogRequest(consistency=pb.LINEARIZABLE)),
            )
            return [await failure_of(take_all(call)) for call in calls]

    for failure in run(main):
        assert failure.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "the leader is node 2 at 127.0.0.1:9292" in (failure.details() or "")


def test_only_a_committed_read_is_followed_and_an_unknown_promise_is_refused() -> None:
    async def main() -> list[grpc.StatusCode]:
        async with serving(source_with_a_proposal()) as rig:
            requests = (
                pb.ReadLogRequest(consistency=pb.LINEARIZABLE, follow=True),
                pb.ReadLogRequest(consistency=pb.LOCAL, follow=True),
                pb.ReadLogRequest(consistency=99),
            )
            return [(await failure_of(take_all(rig.stub.ReadLog(request)))).code() for request in requests]

    assert run(main) == [grpc.StatusCode.INVALID_ARGUMENT] * 3
