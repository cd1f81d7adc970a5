"""The process that delays and loses the packets of links with faults. Standard library only: it has to start at once.

The hub routes the packets of such links into a TUN device; they are read here, and written back into it when their
time has come. `tc netem` would do that in the kernel, and is missing in many kernels, as is all else of `tc` that
drops at random; TUN is in every one.

It reads commands as lines of JSON, and answers each, even an empty one, with the counts of packets so far. It
ends at the end of its input, so it does not outlive its parent, not even one that was killed.
"""

import json
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from tests.jepsen.net.conditions import SOUND, Condition, Shaper, Tally

# Of an IPv4 header: the version, and where both addresses are.
_IPV4 = 4
_ADDRESSES = slice(12, 20)
_PACKET_BYTES_MAX = 65_536
_PACKETS_AT_ONCE = 64


@dataclass(slots=True)
class Line:
    """One link."""

    shaper: Shaper
    condition: Condition = SOUND
    tally: Tally = field(default_factory=Tally)
    waiting: deque[tuple[float, bytes]] = field(default_factory=deque)

    def arrive(self, packet: bytes, now_s: float) -> None:
        condition, shaper = self.condition, self.shaper
        if condition.is_cut:
            self.tally.cut += 1
        elif shaper.is_lost(condition) or shaper.is_full(condition, now_s):
            self.tally.lost += 1
        else:
            departure_s = shaper.departure_s(condition, now_s, len(packet))
            self.tally.delayed += departure_s > now_s
            self.waiting.append((departure_s, packet))

    def change(self, condition: Condition) -> None:
        """What waits is lost when the link is cut, and leaves at once when it does not delay any more."""
        if condition == self.condition:
            return
        self.condition = condition
        self.shaper.restart()
        if condition.is_cut:
            self.tally.cut += len(self.waiting)
            self.waiting.clear()
        elif not condition.is_shaped:
            self.waiting = deque((0.0, packet) for _, packet in self.waiting)

    def due(self, now_s: float) -> list[bytes]:
        packets = []
        while self.waiting and self.waiting[0][0] <= now_s:
            packets.append(self.waiting.popleft()[1])
        self.tally.bytes += sum(map(len, packets))
        return packets


class Lines:
    """All links, by both addresses as they are in a packet."""

    def __init__(self, random_source: Random) -> None:
        self._random_source = random_source
        self._lines: dict[bytes, Line] = {}

    def arrive(self, packet: bytes, now_s: float) -> None:
        line = self._lines.get(packet[_ADDRESSES]) if packet[0] >> 4 == _IPV4 else None
        # What the kernel sends by itself, such as a router solicitation, belongs to no node.
        if line is not None:
            line.arrive(packet, now_s)

    def due(self, now_s: float) -> list[bytes]:
        return [packet for line in self._lines.values() for packet in line.due(now_s)]

    def next_s(self) -> float | None:
        return min((line.waiting[0][0] for line in self._lines.values() if line.waiting), default=None)

    def change(self, conditions: Mapping[str, Mapping[str, Any]]) -> None:
        """All that are not named are sound."""
        for name in conditions:
            self._lines.setdefault(_packed(name), Line(Shaper(self._random_source)))
        named = {_packed(name): Condition(**fields) for name, fields in conditions.items()}
        for addresses, line in self._lines.items():
            line.change(named.get(addresses, SOUND))

    def tallies(self) -> dict[str, dict[str, int]]:
        return {_name(addresses): asdict(line.tally) for addresses, line in self._lines.items()}


def _packed(name: str) -> bytes:
    return b"".join(socket.inet_aton(address) for address in name.split())


def _name(addresses: bytes) -> str:
    return f"{socket.inet_ntoa(addresses[:4])} {socket.inet_ntoa(addresses[4:])}"


def serve(tun: int, commands: int, answers: int) -> None:
    """Until `commands` ends."""
    os.set_blocking(tun, False)
    lines = Lines(Random())
    poll = select.poll()
    for handle in (tun, commands):
        poll.register(handle, select.POLLIN)
    unread = b""
    while True:
        next_s = lines.next_s()
        ready = dict(poll.poll(None if next_s is None else max(0.0, next_s - time.monotonic()) * 1000))
        if tun in ready:
            _read_packets(tun, lines)
        if commands in ready:
            data = os.read(commands, _PACKET_BYTES_MAX)
            if not data:
                return
            *complete, unread = (unread + data).split(b"\n")
            for command in complete:
                if command:
                    lines.change(json.loads(command))
                    _write_packets(tun, lines)
                os.write(answers, json.dumps(lines.tallies()).encode() + b"\n")
        _write_packets(tun, lines)


def _read_packets(tun: int, lines: Lines) -> None:
    for _ in range(_PACKETS_AT_ONCE):
        try:
            packet = os.read(tun, _PACKET_BYTES_MAX)
        except BlockingIOError:
            return
        lines.arrive(packet, time.monotonic())


def _write_packets(tun: int, lines: Lines) -> None:
    for packet in lines.due(time.monotonic()):
        os.write(tun, packet)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.stdin.fileno(), sys.stdout.fileno())
