"""Kafka's keys of the authorizer; docs/authorization.md describes them.

The authorizer is imported where a config has one: it takes two thirds of the time in which a config is loaded.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator

from kquorum.node.config.config_key import config_key
from kquorum.node.config.values import as_flag

if TYPE_CHECKING:
    from kquorum.metadata.authorizer.authorizer import AuthorizerConfig

# Of Kafka with ZooKeeper.
_FORMER = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
SUPER_USERS = "super.users"
VOTERS = "kquorum.voter.principals"


def _as_class_name(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        return value.strip() if isinstance(value, str) else value
    from kquorum.metadata.authorizer.authorizer import CLASS_NAME

    if value.strip() == CLASS_NAME:
        return value.strip()
    if value.strip() in _FORMER:
        raise ValueError(
            f"{value.strip()} needs ZooKeeper; {CLASS_NAME} decides over the ACLs of the metadata log"
        )
    raise ValueError(f"{value.strip()} is a class that cannot be run here; there is {CLASS_NAME}, or none")


def _as_principals(value: object) -> object:
    text = (
        value
        if isinstance(value, str)
        else ";".join(map(str, value))
        if isinstance(value, Iterable)
        else value
    )
    if isinstance(text, str) and text:
        from kquorum.metadata.authorizer.authorizer import parse_principals

        parse_principals(text)
    return text


class AuthorizerKeys(BaseModel):
    authorizer_class_name: Annotated[str, BeforeValidator(_as_class_name)] = config_key(
        "authorizer.class.name"
    )
    super_users: Annotated[str, BeforeValidator(_as_principals)] = config_key(SUPER_USERS)
    kquorum_voter_principals: Annotated[str, BeforeValidator(_as_principals)] = config_key(VOTERS)
    allow_everyone_if_no_acl_found: Annotated[bool, BeforeValidator(as_flag)] = config_key(
        "allow.everyone.if.no.acl.found"
    )

    @property
    def authorizer(self) -> "AuthorizerConfig | None":
        """None: every client may do everything."""
        if not self.authorizer_class_name:
            return None
        from kquorum.metadata.authorizer.authorizer import AuthorizerConfig, parse_principals

        return AuthorizerConfig(
            super_users=parse_principals(self.super_users),
            allow_everyone_if_no_acl_found=self.allow_everyone_if_no_acl_found,
        )


def authorizer_problems(keys: AuthorizerKeys, open_listeners: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(key, message). `open_listeners` are the controller listeners without authentication.

    Until a controller has read the ACLs it listens to super users alone, and it reads them from the other controllers.
    """
    if keys.authorizer is None:
        return
    from kquorum.network.requests import ANONYMOUS

    if ANONYMOUS in keys.authorizer.super_users:
        return
    for name in open_listeners:
        yield (
            SUPER_USERS,
            f"with an authorizer the controllers could not talk to each other: on the listener {name} (PLAINTEXT) all "
            f"are {ANONYMOUS}, which is not in {SUPER_USERS}. Map it to SSL or SASL_SSL and name the principals of all "
            f"nodes in {SUPER_USERS}, or add {ANONYMOUS}, which makes everybody there a super user",
        )
