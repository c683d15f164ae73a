"""PlanCache: the plans that an engine keeps, within half of its memory limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from bbn.core.budget import Room
from bbn.inference.exact.plan import Plan


class PlanCache:
    """Plans by key, the least recently used dropped past a number of plans or half the limit; safe between threads.

    The other half is for runs.
    """

    def __init__(self, plans: int = 512) -> None:
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._most = plans
        self._lock = threading.Lock()
        self.room = Room(self)

    def get(self, key: Hashable) -> Plan | None:
        """The plan of this key, if it is here."""
        plan = self._plans.get(key)
        if plan is not None:
            try:  # not suppress(), which takes longer than the rest
                self._plans.move_to_end(key)
            except KeyError:
                return plan  # another thread has dropped it just now
        return plan

    def put(self, key: Hashable, plan: Plan) -> None:
        """Keep a plan, dropping the oldest ones past half of its limit; the newest always stays."""
        with self._lock:
            if key in self._plans:
                self._forget(self._plans.pop(key))
            plan.kept = plan.bytes
            self.room.kept += plan.kept
            self._plans[key] = plan
            self._drop(plan.limit // 2, 1)

    def discard(self, key: Hashable) -> None:
        """Drop the plan of this key, if it is here."""
        with self._lock:
            if key in self._plans:
                self._forget(self._plans.pop(key))

    def make_room(self, size: int) -> None:
        """Drop the oldest plans until those that stay take no more than `size` bytes."""
        with self._lock:
            self._drop(size, 0)

    @contextmanager
    def turn(self, size: int, limit: int) -> Iterator[None]:
        """Wait until `size` bytes of the limit are free for work that is not a run of a plan, dropping plans for it."""
        with self.room.hold(size, lambda: limit - self.room.kept):
            self.make_room(limit - size)
            yield

    def _drop(self, size: int, stay: int) -> None:
        while len(self._plans) > stay and (len(self._plans) > self._most or self.room.kept > size):
            self._forget(self._plans.popitem(last=False)[1])

    def _forget(self, plan: Plan) -> None:
        self.room.kept -= plan.kept
        plan.drop()
