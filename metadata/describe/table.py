"""Which questions those are, and who answers each."""

from collections.abc import Callable, Mapping

from metadata.controller.requests import Values
from metadata.describe.question import Question
from wire.protocol.api_keys import ApiKey

Describer = Callable[[Question], Values]

DESCRIBERS: Mapping[ApiKey, Describer] = {}
