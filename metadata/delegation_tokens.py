"""What controllers and brokers must agree on about delegation tokens (KIP-48)."""

import hashlib
import hmac

from kquorum.metadata.image.security import DelegationToken

HMAC_KEY_CONFIG = "delegation.token.secret.key"


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """The password of a token, which no node stores: HMAC-SHA512 of its id under the cluster's secret key."""
    return hmac.digest(secret_key.encode(), token_id.encode(), hashlib.sha512().name)


def is_expired(token: DelegationToken, now_ms: int) -> bool:
    return token.max_timestamp_ms < now_ms or token.expiration_timestamp_ms < now_ms


def owners_and_renewers(token: DelegationToken) -> tuple[str, ...]:
    """The principals that may describe a token without further rights. The requester may have made it for the owner."""
    return (token.owner, token.requester, *token.renewers)


def split_principal(principal: str) -> tuple[str, str]:
    """Type and name of "type:name"; a name may contain colons."""
    principal_type, _, name = principal.partition(":")
    return principal_type, name
