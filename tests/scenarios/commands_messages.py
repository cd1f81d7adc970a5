"""Commands about messages: those under way, and those that the script makes itself."""

from dataclasses import replace

from kquorum.raft.inputs import FailureReason, RequestFailed
from tests.scenarios.arguments import Arguments
from tests.scenarios.cluster import Cluster
from tests.scenarios.forging import forge_request, forge_response
from tests.scenarios.host import Asked
from tests.scenarios.network import Message, Selector, read_selector


def deliver(cluster: Cluster, arguments: Arguments) -> None:
    """`deliver`: until nothing is under way. `deliver 1->2 vote`: only what is under way on that link now."""
    words = arguments.rest()
    if words in ([], ["all"]):
        cluster.deliver_all()
        return
    for message in cluster.network.take(read_selector(words)):
        cluster.deliver(message, by_name=True)


def drop(cluster: Cluster, arguments: Arguments) -> None:
    """`drop 1->3`, `drop all`: what is under way there is lost."""
    for message in _taken(cluster, arguments):
        cluster.transcript.say(f"lost: {message.line}")


def hold(cluster: Cluster, arguments: Arguments) -> None:
    """`hold 2->1 votereply`: what is under way there is late, until `release`."""
    for message in _taken(cluster, arguments):
        cluster.network.held.append(message)
        cluster.transcript.say(f"held: {message.line}")


def release(cluster: Cluster, arguments: Arguments) -> None:
    """`release 2->1`: what was held arrives now."""
    for message in cluster.network.take(read_selector(arguments.rest()), held=True):
        cluster.deliver(message, by_name=True)


def duplicate(cluster: Cluster, arguments: Arguments) -> None:
    """`duplicate 1->2 vote`: each arrives once now, and a copy of it stays under way."""
    for message in _taken(cluster, arguments):
        cluster.network.in_flight.append(replace(message))
        cluster.deliver(message, by_name=True)


def fail(cluster: Cluster, arguments: Arguments) -> None:
    """`fail 1->2 vote`: 1 hears that its request could not be sent; `because=unsupported|timeout|disconnected`."""
    reasons = {
        "disconnected": FailureReason.DISCONNECTED,
        "timeout": FailureReason.TIMED_OUT,
        "unsupported": FailureReason.UNSUPPORTED_VERSION,
    }
    reason = reasons[arguments.option("because", "disconnected")]
    for message in _taken(cluster, arguments):
        failure = RequestFailed(message.correlation_id, message.asked_as, reason)
        cluster.hand_over(message.source, message.life, failure)


def answer(cluster: Cluster, arguments: Arguments) -> None:
    """`answer 1->2 fetch records=garbage`: in place of 2 the script answers 1's newest such request under way."""
    words = [arguments.word("the link"), arguments.word("the kind of request")]
    *older, message = cluster.network.take(read_selector(words))
    cluster.network.in_flight[:0] = older
    assert message.request is not None, "only requests can be answered"
    forged = forge_response(message.request, message.target, arguments)
    asked = Asked(
        message.request, str(message.source), message.life, message.correlation_id, message.asked_as
    )
    cluster.transmit_answer(message.target, message.source, asked, forged)
    cluster.deliver(cluster.network.in_flight.pop(), by_name=True)


def request(cluster: Cluster, arguments: Arguments) -> None:
    """`request 1 vote from=9 epoch=5 log=3@4`: a request made by hand; kinds: see `forging`."""
    node_id = arguments.number("the node")
    kind = arguments.word("the kind of request")
    source = (
        "operator" if kind.endswith("voter") or kind == "describe" else arguments.options.get("from", "9")
    )
    cluster.ask(cluster.host(node_id), forge_request(kind, arguments, node_id), source)


def _taken(cluster: Cluster, arguments: Arguments) -> list[Message]:
    words = arguments.rest()
    selector = Selector(None, None, None) if words == ["all"] else read_selector(words)
    return cluster.network.take(selector)
