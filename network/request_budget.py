"""How much memory the connections of a node may hold together before it stops reading from them.

While there is room, every connection is read from. Without room, only connections that hold no more than each is
guaranteed; the others wait, first come, first served. Beyond twice the budget (many connections with little each,
or with large answers that they do not take) all wait. What was read is always served: only that gives room back.
Only half-read frames might wait for each other for good. So where there would be room without them, one connection is
favoured and read from until its frame is complete: a frame larger than the budget gets through, and frames that fill
the budget together get through one by one.

A request that is served may hold many times the bytes of its frame. So beyond twice the requests of the budget no other
is served, and beyond twice its bytes one after the other, whatever each connection is guaranteed. What keeps the quorum
and its brokers together (`network.turns.goes_first`) neither waits for that nor counts: it is short, and thousands of
followers may each wait for the log to grow.

An answer that is made in slices, or in a thread, and that of a consumer's Fetch asks for room before each part. Without
room one such answer at a time is made, and the next only while peers have less than the budget to read: each would add
to what they do not read. The bytes of its parts count as soon as they are made. An address gets no further part while
its peers have more to read than the budget still has for output: half of the budget if it is the only one, less if
there are more such addresses. So an address whose peers read slowly does not keep the answers of others waiting. Of
such an address, peers that take almost nothing are closed early while something waits (`is_crowded`).

An answer for a follower waits neither for requests nor for the output of consumers, or producers would wait for their
followers; it waits while the output of its own address, and the answers that are made for followers, fill twice the
budget by the same rule.

Kafka reserves the announced size of a frame before reading it. Here only bytes that came count, or a peer could take
the whole budget with the four bytes that announce a frame.
"""

from collections.abc import Callable
from typing import Protocol

from kquorum.network.limits import BudgetLimits
from kquorum.network.turns import goes_first

# About what one connection can bring in one turn of the loop.
_CHUNK_BYTES = 262_144
# An address with less unread output than this part of the budget keeps no one waiting.
_MUCH = 16


class Holder(Protocol):
    """A connection; the numbers are the budget's to set."""

    held_bytes: int
    half_read_bytes: int
    held_requests: int
    # Of the requests, those that go first.
    held_first: int
    # Of the bytes, output that the peer has not read.
    unsent_bytes: int
    # The peer's, without the port; it does not change.
    address: str

    def room_may_be_back(self) -> None:
        """Go on if there is room, else ask to wait again."""
        ...


class AnswerInMaking:
    """An answer that takes long: `budget` counts the bytes of its parts until `end`. Without a budget nothing counts,
    and there is always room. `address` is the peer's."""

    __slots__ = ("_budget", "_go_on", "address", "is_for_follower", "made_bytes")

    def __init__(self, budget: "RequestBudget | None" = None, address: str = "") -> None:
        self._budget = budget
        self.address = address
        # A replica of another broker, which has shown that it is one.
        self.is_for_follower = False
        self._go_on: Callable[[], object] | None = None
        self.made_bytes = 0

    def note_made(self, more_bytes: int) -> None:
        if self._budget is not None:
            self.made_bytes += more_bytes
            self._budget.note_made(more_bytes, is_for_follower=self.is_for_follower)

    @property
    def has_room(self) -> bool:
        """Whether the next part may be made; does not wait for it."""
        return self._budget is None or self._budget.has_room_for(self)

    def may_go_on(self, go_on: Callable[[], object]) -> bool:
        """To be asked right before the next part is made. If it may not be made, `go_on` is called once, when it
        may, or when the connection has gone (`go_on_anyway`)."""
        if self._budget is None or self._budget.may_make(self):
            return True
        self._go_on = go_on
        return False

    def go_on_anyway(self) -> None:
        """The connection is gone: what waits for room has only to end."""
        if self._budget is not None and self._go_on is not None:
            self._budget.leave_making(self)
            self.room_may_be_back()

    def room_may_be_back(self) -> None:
        go_on, self._go_on = self._go_on, None
        if go_on is not None:
            go_on()

    def give_back(self) -> None:
        """What was made is given up for now; the answer is made again, after it has asked for room."""
        if self._budget is not None:
            self._budget.leave_making(self)
            self._budget.note_made(-self.made_bytes, is_for_follower=self.is_for_follower)
            self.made_bytes = 0

    def end(self) -> None:
        """The answer is whole, and counts as output from now on; or it is given up. More than once changes nothing."""
        if self._budget is not None:
            budget, self._budget, self._go_on = self._budget, None, None
            budget.leave_making(self)
            budget.note_made(-self.made_bytes, is_for_follower=self.is_for_follower)


class RequestBudget:
    """Shared by the listeners of a node. `soon` calls back in the next turn of the loop."""

    def __init__(self, limits: BudgetLimits, soon: Callable[[Callable[[], None]], object]) -> None:
        self._limits = limits
        self._soon = soon
        self._favoured: Holder | None = None
        self._is_waking = False
        # The waiting connections, by what they wait for; dicts for their order.
        self._for_bytes: dict[Holder, None] = {}
        self._for_twice: dict[Holder, None] = {}
        self._for_requests: dict[Holder, None] = {}
        self._for_twice_requests: dict[Holder, None] = {}
        # Answers in the making that wait for room, and the one that goes on without.
        self._for_making: dict[AnswerInMaking, None] = {}
        self._favoured_answer: AnswerInMaking | None = None
        self.held_bytes = 0
        self.unsent_bytes = 0
        self._made_for_followers = 0
        # The same by address, for those that have any.
        self.unsent_by_address: dict[str, int] = {}
        self.half_read_bytes = 0
        self.held_requests = 0
        self.held_first = 0

    @property
    def waiting(self) -> int:
        lines = (self._for_bytes, self._for_twice, self._for_requests, self._for_twice_requests)
        return sum(map(len, lines)) + len(self._for_making)

    def hold(
        self,
        holder: Holder,
        held_bytes: int,
        half_read_bytes: int,
        held_requests: int,
        held_first: int = 0,
        unsent_bytes: int = 0,
    ) -> None:
        """Tell what a connection holds now; the bytes of a half-read frame and of output are among all its bytes, the
        requests that go first among all its requests."""
        bytes_more, requests_more = held_bytes - holder.held_bytes, held_requests - holder.held_requests
        self.held_bytes += bytes_more
        self.half_read_bytes += half_read_bytes - holder.half_read_bytes
        self.held_requests += requests_more
        unsent_more = unsent_bytes - holder.unsent_bytes
        if unsent_more:
            self._note_unsent(holder.address, unsent_more)
        first_more = held_first - holder.held_first
        self.held_first += first_more
        holder.held_bytes, holder.half_read_bytes = held_bytes, half_read_bytes
        holder.held_requests, holder.held_first = held_requests, held_first
        holder.unsent_bytes = unsent_bytes
        if bytes_more < 0 or unsent_more < 0 or requests_more < 0 or requests_more < first_more:
            self._wake_soon()

    def _note_unsent(self, address: str, more_bytes: int) -> None:
        self.unsent_bytes += more_bytes
        unsent_bytes = self.unsent_by_address.pop(address, 0) + more_bytes
        if unsent_bytes:
            self.unsent_by_address[address] = unsent_bytes

    def may_read(self, holder: Holder) -> bool:
        """If not, the holder waits and hears of it when it may."""
        held, limits = self.held_bytes, self._limits
        if held < limits.max_bytes or holder is self._favoured:
            return True
        if holder.held_bytes > limits.guaranteed_bytes:
            self._for_bytes[holder] = None
        elif held < 2 * limits.max_bytes:
            return True
        else:
            self._for_twice[holder] = None
        if self._favoured is None:
            self._wake_soon()
        return False

    def may_serve(self, holder: Holder, frame: bytes) -> bool:
        """If not, the holder waits and hears of it when it may. `frame` is the request."""
        limits = self._limits
        is_full = self.held_requests >= 2 * limits.max_requests or self.held_bytes >= 2 * limits.max_bytes
        if is_full and not self._room_for_requests() and not goes_first(frame):
            self._for_twice_requests[holder] = None
            return False
        if self.held_requests < limits.max_requests or holder.held_requests < limits.guaranteed_requests:
            return True
        self._for_requests[holder] = None
        return False

    def _room_for_requests(self) -> int:
        """How many more may be served, whatever their connections are guaranteed. One may be where only answers make
        room, but none where peers have to read what fills the memory."""
        limits, served = self._limits, self.held_requests - self.held_first
        if self.unsent_bytes >= 2 * limits.max_bytes:
            return 0
        most = 2 * limits.max_requests if self.held_bytes < 2 * limits.max_bytes else 1
        return max(0, most - served)

    def note_made(self, more_bytes: int, *, is_for_follower: bool = False) -> None:
        """Parts of an answer have been made; fewer if the answer is whole, or given up."""
        self.held_bytes += more_bytes
        if is_for_follower:
            self._made_for_followers += more_bytes
        if more_bytes < 0:
            self._wake_soon()

    def may_make(self, answer: AnswerInMaking) -> bool:
        """If not, the answer waits and hears of it when the next part may be made."""
        if self.has_room_for(answer):
            return True
        may_be_favoured = (
            self._favoured_answer is None and not answer.is_for_follower and self._has_share(answer)
        )
        if may_be_favoured and not self._for_making:
            self._favoured_answer = answer
            return True
        self._for_making[answer] = None
        if may_be_favoured:
            self._wake_soon()
        return False

    def has_room_for(self, answer: AnswerInMaking) -> bool:
        return answer is self._favoured_answer or (
            self._has_share(answer) and (answer.is_for_follower or self.held_bytes < self._limits.max_bytes)
        )

    def leave_making(self, answer: AnswerInMaking) -> None:
        self._for_making.pop(answer, None)
        if answer is self._favoured_answer:
            self._favoured_answer = None
            self._wake_soon()

    def _has_share(self, answer: AnswerInMaking) -> bool:
        """Output makes room by itself: its peer reads it, or is closed. Neither a request that waits for its answer
        nor a half-read frame does, so these do not keep the answer waiting."""
        left_bytes = self._limits.max_bytes - self.unsent_bytes
        if answer.is_for_follower:
            left_bytes += self._limits.max_bytes - self._made_for_followers
        return self._unsent_of(answer) < left_bytes

    def is_crowded(self, address: str) -> bool:
        """Whether something waits while this address has much of the output that its peers have not read."""
        if not self.waiting:
            return False
        most_bytes, unsent_bytes = self._limits.max_bytes, self.unsent_by_address.get(address, 0)
        left_bytes = most_bytes - self.unsent_bytes
        return _MUCH * unsent_bytes >= most_bytes and 2 * unsent_bytes >= left_bytes

    def _unsent_of(self, answer: AnswerInMaking) -> int:
        return self.unsent_by_address.get(answer.address, 0)

    def leave(self, holder: Holder) -> None:
        """Wait for bytes no more."""
        self._for_bytes.pop(holder, None)
        self._for_twice.pop(holder, None)

    def frame_is_complete(self, holder: Holder) -> None:
        if holder is self._favoured:
            self._favoured = None
            self._wake_soon()

    def forget(self, holder: Holder) -> None:
        """The connection is gone."""
        self.hold(holder, 0, 0, 0)
        for line in (self._for_bytes, self._for_twice, self._for_requests, self._for_twice_requests):
            line.pop(holder, None)
        self.frame_is_complete(holder)

    def _wake_soon(self) -> None:
        if not self._is_waking and self.waiting:
            self._is_waking = True
            self._soon(self._wake)

    def _wake(self) -> None:
        """No more at once than there is room for, should each of them bring a chunk; the rest in the next turn."""
        self._is_waking = False
        limits = self._limits
        self._wake_first(self._for_twice_requests, self._room_for_requests())
        self._wake_first(self._for_requests, limits.max_requests - self.held_requests)
        self._wake_first(self._for_bytes, _chunks(limits.max_bytes - self.held_bytes))
        self._wake_first(self._for_twice, _chunks(2 * limits.max_bytes - self.held_bytes))
        self._wake_answers()
        if self._favoured is None and self.held_bytes - self.half_read_bytes < limits.max_bytes:
            self._favour_one()
        if self._has_room_for_more():
            self._wake_soon()

    def _wake_first(self, line: dict[Holder, None], most: int) -> None:
        for holder in tuple(line)[: max(0, most)]:
            if line.pop(holder, self) is None:
                holder.room_may_be_back()

    def _wake_answers(self) -> None:
        """Each asks again before it makes its next part."""
        if not self._for_making:
            return
        with_share = list(filter(self._has_share, self._for_making))
        if self.held_bytes < self._limits.max_bytes:
            woken = with_share[: _chunks(self._limits.max_bytes - self.held_bytes)]
        else:
            woken = [answer for answer in with_share if answer.is_for_follower]
            of_others = [answer for answer in with_share if not answer.is_for_follower]
            if of_others and self._favoured_answer is None:
                self._favoured_answer = min(of_others, key=self._unsent_of)
                woken.append(self._favoured_answer)
        for answer in woken:
            del self._for_making[answer]
        for answer in woken:
            answer.room_may_be_back()

    def _favour_one(self) -> None:
        for line in (self._for_bytes, self._for_twice):
            for holder in line:
                if holder.half_read_bytes:
                    self._favoured = holder
                    del line[holder]
                    holder.room_may_be_back()
                    return

    def _has_room_for_more(self) -> bool:
        limits = self._limits
        return bool(
            (self._for_twice_requests and self._room_for_requests())
            or (self._for_requests and self.held_requests < limits.max_requests)
            or (self._for_bytes and self.held_bytes < limits.max_bytes)
            or (self._for_twice and self.held_bytes < 2 * limits.max_bytes)
            or (
                any(map(self.has_room_for, self._for_making))
                or (self._favoured_answer is None and any(map(self._has_share, self._for_making)))
            )
        )


def _chunks(room_bytes: int) -> int:
    return 0 if room_bytes <= 0 else max(1, room_bytes // _CHUNK_BYTES)
