"""Which requests describe something, and the function that answers each."""

from collections.abc import Callable, Mapping
from typing import Any

from metadata.describe.acls import describe_acls
from metadata.describe.client_quotas import describe_client_quotas
from metadata.describe.config_resources import list_config_resources
from metadata.describe.configs import describe_configs
from metadata.describe.delegation_tokens import describe_delegation_token
from metadata.describe.describe_request import DescribeRequest
from metadata.describe.scram import describe_user_scram_credentials
from wire.protocol.api_keys import ApiKey

# The answer is a response of `wire.messages`, or the values of one for `wire.protocol.entities.build`.
Describer = Callable[[DescribeRequest], Any]

DESCRIBERS: Mapping[ApiKey, Describer] = {
    ApiKey.DESCRIBE_ACLS: describe_acls,
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: describe_delegation_token,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials,
}
