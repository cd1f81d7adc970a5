"""The share of the broker's time that a client may take (KIP-124), by Kafka's RequestQuotaTest."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from immutables import Map

from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.adapters.request_share import MeasuredReply, RequestShare, timed, timed_work
from kquorum.broker.apis.api import Authorized, Local, LocalAsync, Sliced
from kquorum.broker.quota.client_quotas import ClientQuota, ClientQuotas
from kquorum.broker.quota.rate import Windows
from kquorum.metadata.image.quotas import ClientQuotasImage
from kquorum.network.requests import RequestContext
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from kquorum.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader
from tests.support.broker_services import broker_services
from tests.support.images import image_of

LIST_GROUPS = ApiKey.LIST_GROUPS
VERSION = 5
# A tenth of a second in all windows.
IMAGE = ClientQuotasImage(Map({(("user", None),): Map({"request_percentage": 1.0})}))
MS = 1_000_000


class Clock:
    """Of the loop's time, in ns."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns

    def work(self, ms: float) -> None:
        self.ns += round(ms * MS)


class Rig:
    def __init__(self, image: ClientQuotasImage = IMAGE) -> None:
        self.clock = Clock()
        self.quotas = ClientQuotas(lambda: image, Windows())
        self.share = RequestShare(self.quotas, lambda: 0, self.clock)
        self.answers: list[Any] = []
        self.mutes: list[int] = []

    def context(self, api_key: int = LIST_GROUPS, version: int = VERSION) -> RequestContext:
        header = RequestHeader(api_key, version, 1, "app")
        return RequestContext(1, "h", "L", header, "User:alice", throttle=self.mutes.append)

    def reply(self, request: Any = None) -> MeasuredReply:
        request = request or ListGroupsRequest()
        return MeasuredReply(self.share, self.context(request.api_key), request, self.answers.append)

    def used_ms(self) -> float:
        return round(sum(each.per_second * 100 for each in self.quotas.figures(0).rates), 6)


def test_the_time_in_the_handler_counts_and_what_is_too_much_is_told_and_muted() -> None:
    rig = Rig()
    reply = rig.reply()
    with reply.busy():
        rig.clock.work(100)
        reply(ListGroupsResponse())
    assert rig.answers[-1].throttle_time_ms == 0
    reply = rig.reply()
    with reply.busy():
        rig.clock.work(2)
        reply(ListGroupsResponse())
        rig.clock.work(50)  # nothing that this request is charged for
    assert rig.answers[-1].throttle_time_ms == 200
    assert rig.mutes == [200]
    assert rig.used_ms() == 102


def test_an_encoded_answer_tells_it_too() -> None:
    rig = Rig()
    reply = rig.reply()
    with reply.busy():
        rig.clock.work(105)
    reply(EncodedBody(encode(ListGroupsResponse(), VERSION)))
    assert rig.answers == [EncodedBody(encode(ListGroupsResponse(throttle_time_ms=500), VERSION))]


def test_the_larger_throttle_is_told() -> None:
    rig = Rig()
    reply = rig.reply()
    with reply.busy():
        rig.clock.work(105)
    reply(ListGroupsResponse(throttle_time_ms=700))
    assert rig.answers[-1].throttle_time_ms == 700


def test_what_encoding_takes_counts_for_the_next_request() -> None:
    rig = Rig()
    reply = MeasuredReply(rig.share, rig.context(), ListGroupsRequest(), lambda _answer: rig.clock.work(101))
    with reply.busy():
        reply(ListGroupsResponse())
    assert rig.mutes == []
    second = rig.reply()
    with second.busy():
        second(ListGroupsResponse())
    assert second is not reply
    assert rig.mutes == [100]


def test_followers_are_exempt() -> None:
    rig = Rig()
    for request in (FetchRequest(replica_id=2), FetchRequest(replica_state=ReplicaState(replica_id=2))):
        reply = rig.reply(request)
        with reply.busy():
            rig.clock.work(500)
            reply(FetchResponse())
    consumer = rig.reply(FetchRequest())
    with consumer.busy():
        rig.clock.work(7)
        consumer(FetchResponse())
    assert rig.mutes == []
    assert rig.used_ms() == 7
    assert rig.quotas.figures(0).exempt_request_time == pytest.approx(10), "a second of ten"


def test_the_steps_of_a_coroutine_count_and_its_waits_do_not() -> None:
    rig = Rig()

    async def test() -> None:
        event = asyncio.Event()

        async def work() -> str:
            rig.clock.work(20)
            await event.wait()
            rig.clock.work(30)
            await asyncio.sleep(0)
            rig.clock.work(5)
            return "done"

        reply = rig.reply()
        task = asyncio.create_task(timed_work(work(), reply))
        await asyncio.sleep(0)
        rig.clock.work(10_000)  # others
        event.set()
        assert await task == "done"
        reply(ListGroupsResponse())
        assert rig.used_ms() == 55

    asyncio.run(test())


def test_a_coroutine_that_is_cancelled_or_fails_is_the_same_as_without_measuring() -> None:
    rig = Rig()
    seen: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def outcome(work: Coroutine[Any, Any, None], *, cancel: bool) -> BaseException | None:
        task = asyncio.create_task(timed_work(work, rig.reply()))
        await asyncio.sleep(0)
        if cancel:
            task.cancel()
        return (await asyncio.gather(task, return_exceptions=True))[0]

    assert isinstance(asyncio.run(outcome(waits(), cancel=True)), asyncio.CancelledError)
    assert isinstance(asyncio.run(outcome(fails(), cancel=False)), ValueError)
    assert seen == ["cancelled"]


def test_work_in_slices_counts_with_the_slice_within_the_handler_once() -> None:
    rig = Rig()
    reply = rig.reply()
    work = timed(lambda: rig.clock.work(10), reply)
    with reply.busy():
        work()
    work()
    reply(ListGroupsResponse())
    assert rig.used_ms() == 20
    plain = lambda: None  # noqa: E731
    assert timed(plain, rig.answers.append) is plain


def listener(rig: Rig, quotas: ClientQuotas, *, is_measured: bool = True) -> BrokerListener:
    """Its handlers take 105 ms each."""

    def busy(*_: Any) -> ListGroupsResponse:
        rig.clock.work(105)
        return ListGroupsResponse()

    async def busy_later(*_: Any) -> ListGroupsResponse:
        await asyncio.sleep(0)
        return busy()

    def in_slices(*_: Any) -> Any:
        slices = iter((None, EncodedBody(encode(busy(), VERSION))))
        return lambda: next(slices)

    apis: Any = {
        LIST_GROUPS: Local(LIST_GROUPS, Authorized.NOT_NEEDED, handle=busy),
        ApiKey.FIND_COORDINATOR: LocalAsync(
            ApiKey.FIND_COORDINATOR, Authorized.NOT_NEEDED, handle=busy_later
        ),
        ApiKey.METADATA: Sliced(ApiKey.METADATA, Authorized.NOT_NEEDED, begin=in_slices),
    }
    made = BrokerListener(broker_services(image_of(), quotas=quotas), apis=apis)
    if is_measured:
        made._share = RequestShare(quotas, lambda: 0, rig.clock)
    return made


async def throttles(rig: Rig, made: BrokerListener, api_key: int) -> int:
    answered = asyncio.Event()
    made.handle(rig.context(api_key), ListGroupsRequest(), lambda _answer: answered.set())
    await answered.wait()
    await made.stop()
    return sum(rig.mutes)


def test_the_listener_measures_each_kind_of_handler() -> None:
    for api_key in (LIST_GROUPS, ApiKey.FIND_COORDINATOR, ApiKey.METADATA):
        rig = Rig()
        made = listener(rig, rig.quotas)
        assert asyncio.run(throttles(rig, made, api_key)) == 500, api_key


def test_without_such_a_quota_nothing_is_measured() -> None:
    image = ClientQuotasImage(Map({(("user", None),): Map({"producer_byte_rate": 1.0})}))
    rig = Rig(image)
    made = listener(rig, rig.quotas)
    assert asyncio.run(throttles(rig, made, LIST_GROUPS)) == 0
    assert not rig.quotas.is_in_force(ClientQuota.REQUEST)
    assert rig.quotas.figures(0).rates == ()
