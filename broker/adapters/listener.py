"""The broker's listener for clients: it bounds and authorizes a request, and runs the handler of its API.

`broker.apis.registry` says for each API how it is answered: at once, later, in slices, by the active controller, or
with a refusal.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kquorum.broker.adapters.request_share import MeasuredReply, RequestShare, timed, timed_work
from kquorum.broker.adapters.request_tasks import RequestTasks
from kquorum.broker.apis.api import (
    BrokerApi,
    Deferred,
    Forwarded,
    Local,
    LocalAsync,
    Refused,
    Sliced,
    SlicedQuestion,
)
from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.apis.services import BrokerServices
from kquorum.broker.quota.answers import throttle_time_of
from kquorum.metadata.adapters.request_bounds import RequestBounds
from kquorum.metadata.adapters.requests import answered_in_slices, controller_request
from kquorum.metadata.adapters.requests import refused as refused_body
from kquorum.metadata.authorizer.authorization import Authorization
from kquorum.metadata.authorizer.gate import AuthorizationResult
from kquorum.network.aside import Aside, is_long
from kquorum.network.long_replies import AnswersAside, reply_in_slices
from kquorum.network.requests import Reply, RequestContext
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, encode_body

log = logging.getLogger("broker.listener")


class BrokerListener:
    """`handle` is the handler of a KafkaServer; one for each listener name serves all of them."""

    def __init__(
        self,
        services: BrokerServices,
        *,
        bounds: RequestBounds | None = None,
        apis: Mapping[ApiKey, BrokerApi] = BROKER_APIS,
    ) -> None:
        self._services = services
        self._bounds = bounds or RequestBounds()
        # By number, as a header has it.
        self._apis: dict[int, BrokerApi] = {int(api_key): api for api_key, api in apis.items()}
        self._share = RequestShare(services.quotas, services.data.now_ms)
        self._tasks = RequestTasks()
        self._waits: set[asyncio.Task[Any]] = set()
        self._has_ended_waits = False
        self._long_answers = AnswersAside(Aside("long-answers"))
        self.supported = {api_key: api.versions for api_key, api in apis.items()}

    def handle(self, context: RequestContext, request: Request[Response], reply: Reply) -> None:
        if not self._share.is_in_force:
            self._handle(context, request, reply)
            return
        measured = MeasuredReply(self._share, context, request, reply)
        with measured.busy():
            self._handle(context, request, measured)

    def _handle(self, context: RequestContext, request: Request[Response], reply: Reply) -> None:
        api = self._apis[context.header.api_key]
        excess = self._bounds.excess(api.entry_limit, context.elements)
        if excess is not None:
            refused = partial(refused_body, controller_request(context, request), excess)
            self._answer(context, refused, reply, aside=True)
            return
        authorization = api.authorization
        if not isinstance(authorization, Authorization):
            self._carry_out(api, context, request, None, reply)
        elif isinstance(api, SlicedQuestion):
            self._answer_in_slices(api, authorization, context, request, reply)
        else:
            self._go_on(api, context, request, self._judge(authorization, context, request), reply)

    def _answer_in_slices(
        self,
        api: SlicedQuestion,
        authorization: Authorization,
        context: RequestContext,
        request: Request[Response],
        reply: Reply,
    ) -> None:
        services = self._services
        asked = controller_request(context, request)
        slices = answered_in_slices(
            asked,
            services.authorizer.judge_in_slices(authorization, asked, services.cache.image),
            lambda verdict: api.slices(services.describe_request(context, verdict.body), verdict.refused),
        )
        reply_in_slices(timed(slices.__next__, reply), reply, context)

    def _go_on(
        self,
        api: BrokerApi,
        context: RequestContext,
        request: Request[Response],
        passage: AuthorizationResult,
        reply: Reply,
    ) -> None:
        if passage.answer is not None:
            # A long request has many entries, and its refusal as many.
            refusal = passage.answer
            self._answer(context, lambda: refusal, reply, aside=is_long(context.frame))
        else:
            self._carry_out(api, context, request, passage, reply)

    def _carry_out(
        self,
        api: BrokerApi,
        context: RequestContext,
        request: Request[Response],
        passage: AuthorizationResult | None,
        reply: Reply,
    ) -> None:
        match api:
            case Local() | Refused():
                answered = partial(self._answered, api, context, request, passage)
                self._answer(context, answered, reply, aside=api.is_pure and is_long(context.frame))
            case Sliced():
                advance = api.begin(context, request, self._services)
                reply_in_slices(timed(advance, reply), reply, context)
            case LocalAsync():
                self._wait_for(api, context, request, reply)
            case Deferred():
                assert passage is None, f"{api.api_key.name}: its handler authorizes"
                api.handle(context, request, self._services, reply)
            case Forwarded():
                self._tasks.run(self._forward(context, request, reply))
            case _:
                raise AssertionError(f"the listener does not know how {api.api_key.name} is answered")

    def end_waits(self) -> None:
        """Cancel the handlers that wait, now and from now on: the broker stops. Their clients lose their connections,
        and ask elsewhere."""
        self._has_ended_waits = True
        self._services.data.waits.close()
        self._services.groups.close()
        self._services.transactions.close()
        for task in tuple(self._waits):
            task.cancel()

    async def stop(self) -> None:
        """Give up what is still being forwarded or waits."""
        self.end_waits()
        self._long_answers.close()
        await self._tasks.stop()

    def _judge(
        self, authorization: Authorization, context: RequestContext, request: Request[Response]
    ) -> AuthorizationResult:
        services = self._services
        asked = controller_request(context, request)
        return services.authorizer.judge(authorization, asked, services.cache.image)

    def _answered(
        self,
        api: Local | Refused,
        context: RequestContext,
        request: Request[Response],
        passage: AuthorizationResult | None,
    ) -> Response | EncodedBody | None:
        if passage is None:
            return api.handle(context, request, self._services)
        answer = api.handle(context, passage.verdict.body, self._services)
        assert isinstance(answer, Response), f"{api.api_key.name}: what a rule may complete is a message"
        completed: Response = passage.verdict.complete(answer)
        return completed

    def _answer(
        self,
        context: RequestContext,
        make: Callable[[], Response | EncodedBody | None],
        reply: Reply,
        *,
        aside: bool,
    ) -> None:
        """Now, or `aside` in the thread of long answers."""

        def encoded() -> EncodedBody | None:
            answer = make()
            if answer is None or isinstance(answer, EncodedBody):
                return answer
            return EncodedBody(encode_body(answer, context.header.api_version))

        if aside:
            self._long_answers.begin(context, timed(encoded, reply), reply)
        else:
            reply(make())

    def _wait_for(
        self, api: LocalAsync, context: RequestContext, request: Request[Response], reply: Reply
    ) -> None:
        if self._has_ended_waits:
            reply(None)
            return
        task = self._tasks.run(timed_work(api.handle(context, request, self._services), reply))
        self._waits.add(task)
        forget = context.when_gone(task.cancel)

        def has_ended(task: asyncio.Task[Any]) -> None:
            """Not in the task: one that is cancelled before its first step runs none of its code."""
            self._waits.discard(task)
            forget()
            # Whatever happened, a client is never left waiting: without an answer its connection ends.
            reply(None if task.cancelled() or task.exception() is not None else task.result())

        task.add_done_callback(has_ended)

    async def _forward(self, context: RequestContext, request: Request[Response], reply: Reply) -> None:
        answer: EncodedBody | None = None
        try:
            answer = await self._services.forwarder.forward(context, request)
        except DecodeError as error:
            log.error("the controller's answer to %s: %s", ApiKey(context.header.api_key).name, error)
        else:
            # What the controller's quota of changes says, this broker sees to, for it has the client's connection.
            header = context.header
            context.throttle(throttle_time_of(answer, header.api_key, header.api_version))
        finally:
            reply(answer)
