"""Devices walked in lock step: each goes on until it needs others, which are then walked.

No threads are needed, so that the number of devices does not depend on the machine.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.driver.collectives import Collective
from vhlo_tools.interpreter.driver.steps import Device, Rendezvous, Walk
from vhlo_tools.interpreter.driver.transfers import Receive, Send
from vhlo_tools.interpreter.grid import Grid, Groups

__all__ = ["run_in_lockstep"]


def run_in_lockstep(grid: Grid, devices: Sequence[Device], walks: Sequence[Walk]) -> list[list[Any]]:
    """Return what the walk of each device returns.

    Args:
        grid: All devices.
        devices: The same, by number.
        walks: The walk of each.

    Raises:
        EngineError: If devices wait for each other in vain, naming what each waits at; or if a walk fails.
    """
    return _Lockstep(grid, devices, walks).run()


class _Lockstep:
    def __init__(self, grid: Grid, devices: Sequence[Device], walks: Sequence[Walk]) -> None:
        self._grid = grid
        self._devices = devices
        self._walks = walks
        self._waiting: dict[int, Rendezvous] = {}
        self._finished: dict[int, list[Any]] = {}
        # What was sent by channel to each device.
        self._mail: defaultdict[tuple[int, int], deque[tuple[Any, ...]]] = defaultdict(deque)
        self._groups: dict[int, Groups] = {}

    def run(self) -> list[list[Any]]:
        for number in range(len(self._walks)):
            self._advance(number, None)
        while self._waiting:
            gone_on = [self._try(number) for number in list(self._waiting)]
            if not any(gone_on):
                raise EngineError(self._stuck())
        return [self._finished[number] for number in range(len(self._walks))]

    def _advance(self, number: int, answer: Any) -> None:
        """Walk a device on to where it needs others, or to its end."""
        try:
            self._waiting[number] = self._walks[number].send(answer)
        except StopIteration as stop:
            self._waiting.pop(number, None)
            self._finished[number] = stop.value

    def _try(self, number: int) -> bool:
        """Give a device what it waits for, if that is there, and the others that met it."""
        at = self._waiting.get(number)
        if at is None:
            return False
        if isinstance(at.step, Send):
            for target in at.step.targets(self._grid, number):
                self._mail[at.step.channel, target].append(at.values)
            self._advance(number, ())
            return True
        if isinstance(at.step, Receive):
            return self._receive(number, at.step)
        return self._meet(number, at.step)

    def _receive(self, number: int, step: Receive) -> bool:
        if not step.has_source(self._grid, number):
            self._advance(number, step.nothing())
            return True
        if mail := self._mail[step.mailbox(number)]:
            self._advance(number, mail.popleft())
            return True
        return False

    def _meet(self, number: int, step: Collective) -> bool:
        members = self._members(step, number)
        if members is None:
            alone = step.alone(self._waiting[number].values)
            if alone is None:
                raise EngineError(f"{step.grouping.place}: {self._named(number)} belongs to none of its groups")
            self._advance(number, alone)
            return True
        met = [self._waiting[each] for each in members if each in self._waiting]
        if len(met) < len(members) or any(each.step is not step for each in met):
            return False
        evaluate = self._devices[number].evaluate
        answers = step.exchanged(evaluate, self._grid, members, [each.values for each in met])
        for each, answer in zip(members, answers, strict=True):
            self._advance(each, answer)
        return True

    def _members(self, step: Collective, number: int) -> tuple[int, ...] | None:
        if id(step) not in self._groups:
            self._groups[id(step)] = step.groups(self._grid)
        return next((group for group in self._groups[id(step)] if number in group), None)

    def _stuck(self) -> str:
        """Return what each device waits at."""
        lines = [
            "the devices wait for each other and none can go on; all of a group must come to the same collective:",
        ]
        for number in range(len(self._walks)):
            at = self._waiting.get(number)
            what = "is at its end" if at is None else f"waits at {at.step.place}"
            lines.append(f"{self._named(number)} {what}")
        return "\n  ".join(lines)

    def _named(self, number: int) -> str:
        replica, partition = self._grid.place(number)
        return f"device {number} (replica {replica}, partition {partition})"
