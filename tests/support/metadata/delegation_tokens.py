"""A controller world with delegation tokens, and the requests about them."""

from typing import Any

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.image.security import DelegationToken
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import read_answer, request_of
from tests.support.controller_world import World

KEY = "a key that cannot be guessed"


DAY_MS = 86_400_000


HOUR_MS = 3_600_000


CREATE, RENEW, EXPIRE = (
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
)


def token_world(level: int = 25, **changes: Any) -> World:
    config = ControllerConfig(
        bootstrap_records=bootstrap_records(level, {}),
        **{"delegation_token_secret_key": KEY, "metadata_max_idle_interval_ms": 0, **changes},
    )
    world = World(config).lead()
    world.commit()
    return world


def ask(world: World, api_key: ApiKey, version: int, *, principal: str = "User:alice", **values: Any) -> Any:
    answers: list[Response] = []
    request = ControllerRequest(
        api_key=api_key,
        api_version=version,
        body=request_of(api_key, version, values),
        principal=principal,
    )
    world.controller.handle_request(world.now_ms, request, answers.append)
    world.commit()
    (answer,) = answers
    return read_answer(api_key, version, answer)


def create(world: World, version: int = 3, **changes: Any) -> Any:
    values: dict[str, Any] = {"renewers": [], "max_lifetime": -1}
    if version >= 3:
        values |= {"owner_principal_type": None, "owner_principal_name": None}
    return ask(world, CREATE, version, **{**values, **changes})


def renew(world: World, password: bytes, period_ms: int = -1, **who: str) -> Any:
    return ask(world, RENEW, 2, hmac=password, renew_period=period_ms, **who)


def expire(world: World, password: bytes, period_ms: int = -1, **who: str) -> Any:
    return ask(world, EXPIRE, 2, hmac=password, expiry_time_period=period_ms, **who)


def the_token(world: World) -> DelegationToken:
    (token,) = world.controller.committed_image.security.delegation_tokens.values()
    return token
