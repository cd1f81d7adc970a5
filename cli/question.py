"""One question to the nodes of a cluster, and what came of it so far."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.cluster_addresses import KnownControllers
from cli.errors import CliError
from cli.exit_status import ExitStatus
from network.errors import (
    AuthenticationFailed,
    CannotConnect,
    CertificateRefused,
    ConnectTimedOut,
    HungUp,
    NetworkError,
    NoCommonVersion,
    RequestTimedOut,
)
from node.config.addresses import HostPort
from wire.protocol.apis import ApiKey, api_name

# A peer that was given less time than this, and said nothing, may be well.
_TELLING_MS = 500
# Somebody is there, and says no.
_REFUSALS = (AuthenticationFailed, CertificateRefused, NoCommonVersion)
# The question did not go out, and would not at another attempt: which APIs there are is asked first.
_UNSENT = (CannotConnect, HungUp, NoCommonVersion)


@dataclass(slots=True, kw_only=True)
class Question:
    """One question and what came of it so far.

    `accept` takes a response or not; a refused one may `hint` at whom to ask next, and `refusal` says in words why it
    is none. `patience_ms` is how long one of several nodes may be mute before the next is asked; one that `takes_long`
    to answer may take half of the time there is, once it has said which APIs it offers. `doubt` is what to say when a
    change was sent and no answer came: it may have been made. `is_hopeless` ends the asking early.
    """

    api_key: ApiKey
    body: Mapping[str, object]
    accept: Callable[[Any], bool] = lambda _: True
    hint: Callable[[Any], HostPort | None] = lambda _: None
    refusal: Callable[[Any], str] = lambda _: "answers, but cannot tell"
    is_hopeless: Callable[["Question"], bool] = lambda _: False
    patience_ms: int | None = None
    takes_long: bool = False
    doubt: str | None = None
    wanted: str = ""
    refused: dict[HostPort, Any] = field(default_factory=dict)
    silent: dict[HostPort, str] = field(default_factory=dict)
    is_in_flight: bool = False
    may_be_done: bool = False
    was_late: bool = False
    was_refused: bool = False
    _telling: set[HostPort] = field(default_factory=set, repr=False)

    @property
    def what(self) -> str:
        return self.wanted or f"an answer to {api_name(self.api_key)}"

    def reasons(self, known: KnownControllers) -> str:
        """What each address said, or that it did not."""
        said = {
            address: f"{known.name_of(address)} {self.refusal(it)}" for address, it in self.refused.items()
        }
        for address, reason in self.silent.items():
            said[address] = f"node {known.ids[address]}: {reason}" if address in known.ids else reason
        return "; ".join(said.values())

    def begin_with(self, address: HostPort, state: str) -> None:
        """What is known of an attempt until it ends; what an earlier one came to tells more."""
        if address not in self.refused and address not in self._telling:
            self.silent[address] = f"{address} {state}"

    def fail(self, address: HostPort, error: NetworkError, share_ms: int, reason: str) -> None:
        """An attempt which only the end of the time cut off does not hide why an earlier one failed."""
        self.was_refused = self.was_refused or isinstance(error, _REFUSALS)
        is_telling = not isinstance(error, RequestTimedOut | ConnectTimedOut) or share_ms >= _TELLING_MS
        if is_telling or address not in self.silent:
            self.silent[address] = reason
        if is_telling:
            self._telling.add(address)
        if not isinstance(error, _UNSENT):
            self.may_be_done = True
            self.was_late = self.doubt is None  # a change is not sent again by itself


class Unanswered(CliError):
    """Nobody gave the answer that was asked for; `question` tells what they gave instead."""

    def __init__(self, question: Question, message: str) -> None:
        self.question = question
        is_in_doubt = question.doubt is not None and question.may_be_done
        is_refused = question.was_refused and not is_in_doubt
        super().__init__(message, status=ExitStatus.FAILED if is_refused else ExitStatus.UNREACHABLE)
