"""The regular expressions by which members of consumer groups subscribe to topics (rules G9.1 to G9.10).

To look through all topics takes long, and so does the compilation of many expressions: it is done part by part between
other work, one expression after the other, so that one compiled expression at a time takes memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any, Final

from kquorum.broker.coordinators.regexes import InvalidRegex, compiled
from kquorum.broker.groups.consumer_group import ResolvedRegex
from kquorum.broker.groups.group_errors import GroupError
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode

MOST_REGEXES: Final = 100
"""Of one group: some bytes of an expression cost milliseconds each time that it is resolved."""
_MATCHES_AT_ONCE: Final = 1_000


def check_regex(regex: str) -> None:
    """Raises GroupError."""
    try:
        compiled(regex)
    except InvalidRegex as error:
        raise GroupError(
            ErrorCode.invalid_regular_expression,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


class RegexResolution:
    """Looks for the topics of several expressions in one image, for a client that sees topics for which `may_describe`
    is true."""

    def __init__(
        self,
        regexes: Collection[str],
        image: MetadataImage,
        may_describe: Callable[[str], bool],
    ) -> None:
        self._image = image
        self._may_describe = may_describe
        self._found: dict[str, set[str]] = {regex: set() for regex in regexes}
        self._left = iter(self._found.items())
        self._topics: set[str] = set()
        self._pattern: Any = None
        self._names: Iterator[str] = iter(())

    def advance(self) -> bool:
        """Compile the next expression, or look through some more topics; whether that were all."""
        if self._pattern is None:
            regex, self._topics = next(self._left, (None, self._topics))
            if regex is None:
                return True
            try:
                self._pattern = compiled(regex)
            except InvalidRegex:
                # Of a broker of Kafka, with other limits: it matches nothing.
                return False
            self._names = iter(self._image.topics.by_name)
        looked = tuple(islice(self._names, _MATCHES_AT_ONCE))
        self._topics.update(
            name for name in looked if self._pattern.fullmatch(name) and self._may_describe(name)
        )
        if len(looked) == _MATCHES_AT_ONCE:
            return False
        self._pattern = None
        return False

    def result(self, now_ms: int) -> dict[str, ResolvedRegex]:
        version = self._image.provenance.last_contained_offset
        return {
            regex: ResolvedRegex(frozenset(topics), version, now_ms) for regex, topics in self._found.items()
        }
