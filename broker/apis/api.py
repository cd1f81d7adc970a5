"""How an API of a broker's listener is declared: how it is answered, what it authorizes, and in which versions.

The class says how it is answered: `Local` at once, `LocalAsync` and `Deferred` later, `Sliced` and `SlicedQuestion` a
slice after the other, `Forwarded` by the active controller, `Refused` with an error. `broker.apis.registry` names the
declaration of each API.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.metadata.authorizer.authorization import Authorization
from kquorum.metadata.controller_apis import EntryLimit, Slices
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.headers import EncodedBody, NoAnswer

# None ends the client's connection.
Answer = Response | EncodedBody | NoAnswer | None
Handler = Callable[[RequestContext, Any, BrokerServices], Response | EncodedBody | None]
DeferredHandler = Callable[[RequestContext, Any, BrokerServices, Callable[[Answer], None]], None]
AsyncHandler = Callable[
    [RequestContext, Any, BrokerServices], Coroutine[Any, Any, Response | EncodedBody | None]
]
# Makes a slice of the answer at each call, and returns the whole answer from the last.
Advance = Callable[[], EncodedBody | None]
SlicedHandler = Callable[[RequestContext, Any, BrokerServices], Advance]


class Authorized(Enum):
    """Where a request is authorized if the listener does not do it."""

    IN_HANDLER = auto()
    AT_CONTROLLER = auto()
    # The answer says nothing about the cluster, and the request changes nothing.
    NOT_NEEDED = auto()


@dataclass(frozen=True, slots=True)
class BrokerApi:
    """With an `Authorization` the listener authorizes each request before its handler runs; the handler gets the
    allowed part. `latest_version` is the last version that Kafka 4.3 offers as stable, if kquorum could read later
    ones."""

    api_key: ApiKey
    authorization: Authorization | Authorized
    entry_limit: EntryLimit = EntryLimit.NONE
    latest_version: int | None = None

    @property
    def versions(self) -> tuple[int, int]:
        """The lowest and the highest that are offered."""
        lowest, highest = supported_versions(self.api_key)
        return lowest, highest if self.latest_version is None else min(highest, self.latest_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Local(BrokerApi):
    """The handler answers at once. `is_pure`: the answer follows from the request and one image, so a long request may
    be answered in a thread."""

    handle: Handler
    is_pure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAsync(BrokerApi):
    """The handler may wait, for one of the services or for a `DelayedOperation`.

    It is cancelled when the client's connection closes and when the broker stops. Requests behind it on the same
    connection are served meanwhile, and answered in their order.
    """

    handle: AsyncHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred(BrokerApi):
    """The handler passes its answer on once: at once, or when an event in the broker completes the request.

    Without a task for each request, which would cost a Produce more than its append. The handler sees to it that a
    request ends whose client is gone (`context.when_gone`); the data plane's waits end when the broker stops.
    """

    handle: DeferredHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliced(BrokerApi):
    """The answer may take long to make, so it is made in slices, between which other clients are served."""

    begin: SlicedHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedQuestion(BrokerApi):
    """A question that a controller answers too. The authorizer judges it in slices as well, entry by entry."""

    slices: Slices


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarded(BrokerApi):
    """The active controller answers. A request that was begun goes on when its client leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(BrokerApi):
    """The API has no handler: `refuse` makes the response from the request and its version. See
    docs/contributing.md for how to replace it by a handler."""

    authorization: Authorization | Authorized = Authorized.NOT_NEEDED
    refuse: Callable[[Any, int], Response | None]
    is_pure: ClassVar[bool] = True

    def handle(
        self, context: RequestContext, request: Any, _services: BrokerServices
    ) -> Response | EncodedBody | None:
        return self.refuse(request, context.header.api_version)
