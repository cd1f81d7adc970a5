"""The messages of a play: rules of the script pick those that are lost, kept back, copied or changed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kquorum.raft.inputs import Input, RequestReceived, ResponseReceived
from kquorum.raft.messages import Request, Response
from kquorum.raft.replica import FIRST_BOOTSTRAP_ID
from tests.simulation.directed.setting import Setting
from tests.simulation.hosts import Host, WaitingReply


@dataclass(frozen=True, slots=True)
class Message:
    """What arrives at `target`; `body` is the request or the response itself."""

    source: int
    target: int
    body: Request | Response


Where = Callable[[Message], bool]


@dataclass(eq=False)
class Rule:
    """What happens to the messages that `where` picks: they are lost, kept back, copied, or changed."""

    where: Where
    kind: str
    change: Callable[[Response], Response] | None = None
    kept: list[tuple[Host, int, Input]] = field(default_factory=list)


class Post(Setting):
    """A world whose messages pass by the rules of the script."""

    def __init__(self, *counts: int, **setting: Any) -> None:
        self.rules: list[Rule] = []
        super().__init__(*counts, **setting)

    def deliver(self, host: Host, life: int, event: Input) -> None:
        message = self._message(host, event)
        if message is None:
            super().deliver(host, life, event)
        elif host.paused_until_ms <= self.now_ms:
            ruled = self._pass_rules(host, life, event, message)
            if isinstance(ruled, RequestReceived) and host.life == life:
                self.watch.request_arrived(host, ruled)
            if ruled is not None:
                super().deliver(host, life, ruled)

    def _message(self, host: Host, event: Input) -> Message | None:
        """None for what is no message between nodes."""
        if isinstance(event, ResponseReceived):
            return Message(self._node_asked(host, event.source_id), host.node_id, event.response)
        if isinstance(event, RequestReceived) and event.request_id in host.waiting_replies:
            source = host.waiting_replies[event.request_id].source
            return None if source is None else Message(source.node_id, host.node_id, event.request)
        return None

    def _node_asked(self, host: Host, node_id: int) -> int:
        """Bootstrap servers are addressed as -2, -3, ... in the order of the configuration."""
        if node_id > FIRST_BOOTSTRAP_ID or host.node is None:
            return node_id
        endpoint = host.node.replica.config.bootstrap_servers[FIRST_BOOTSTRAP_ID - node_id]
        return next(one.node_id for one in self.hosts.values() if one.endpoint == endpoint)

    def _pass_rules(self, host: Host, life: int, event: Input, message: Message) -> Input | None:
        """The message, perhaps changed; None if it goes no further."""
        for rule in self.rules:
            if not rule.where(message):
                continue
            if rule.kind in ("hold", "copy"):
                rule.kept.append((host, life, event))
            if rule.kind in ("hold", "drop"):
                return None
            if rule.change is not None and isinstance(event, ResponseReceived):
                event = replace(event, response=rule.change(event.response))
        return event

    def ask_as_operator(self, node_id: int, request: Request) -> None:
        """The answer will be the operator's."""
        host = self.hosts[node_id]
        assert host.node is not None
        host.next_request_id += 1
        host.waiting_replies[host.next_request_id] = WaitingReply(None, 0, 0, 0, request, 0)
        self.deliver(host, host.life, RequestReceived(host.next_request_id, request))

    # Rules

    def drop(self, where: Where) -> Rule:
        return self._rule(Rule(where, "drop"))

    def hold(self, where: Where) -> Rule:
        """Keep messages back until `release`."""
        return self._rule(Rule(where, "hold"))

    def copy(self, where: Where) -> Rule:
        """Keep a second copy of messages, for `release`."""
        return self._rule(Rule(where, "copy"))

    def tamper(self, where: Where, change: Callable[[Response], Response]) -> Rule:
        return self._rule(Rule(where, "tamper", change))

    def _rule(self, rule: Rule) -> Rule:
        self.rules.append(rule)
        return rule

    def end(self, *rules: Rule) -> None:
        for rule in rules:
            self.rules.remove(rule)

    def release(self, rule: Rule) -> None:
        """End a rule and deliver what it kept."""
        if rule in self.rules:
            self.rules.remove(rule)
        kept, rule.kept = rule.kept, []
        for host, life, event in kept:
            self.deliver(host, life, event)

    def cut_off(self, *side: int) -> Rule:
        """These nodes hear each other, and no others."""
        return self.drop(lambda message: (message.source in side) != (message.target in side))

    def mend(self) -> None:
        """No rule any more; what was kept back is lost."""
        self.rules.clear()
