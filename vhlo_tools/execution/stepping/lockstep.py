"""Execution of devices in lockstep: each runs until it needs other devices, which then run.

No threads are used, so that the number of devices does not depend on the machine.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from vhlo_tools.errors import EngineError
from vhlo_tools.execution.devices.grid import Grid, Groups
from vhlo_tools.execution.stepping.collectives import Collective
from vhlo_tools.execution.stepping.steps import Device, DeviceRun, Rendezvous
from vhlo_tools.execution.stepping.transfers import Receive, Send


def run_in_lockstep(grid: Grid, devices: Sequence[Device], runs: Sequence[DeviceRun]) -> list[list[Any]]:
    return _Lockstep(grid, devices, runs).run()


class _Lockstep:
    def __init__(self, grid: Grid, devices: Sequence[Device], runs: Sequence[DeviceRun]) -> None:
        self._grid = grid
        self._devices = devices
        self._runs = runs
        self._waiting: dict[int, Rendezvous] = {}
        self._finished: dict[int, list[Any]] = {}
        # The values sent to each device, by channel.
        self._mail: defaultdict[tuple[int, int], deque[tuple[Any, ...]]] = defaultdict(deque)
        self._groups: dict[int, Groups] = {}

    def run(self) -> list[list[Any]]:
        for number in range(len(self._runs)):
            self._advance(number, None)
        while self._waiting:
            gone_on = [self._try(number) for number in list(self._waiting)]
            if not any(gone_on):
                raise EngineError(self._stuck())
        return [self._finished[number] for number in range(len(self._runs))]

    def _advance(self, number: int, answer: Any) -> None:
        """Runs a device until it needs other devices, or to its end."""
        try:
            self._waiting[number] = self._runs[number].send(answer)
        except StopIteration as stop:
            self._waiting.pop(number, None)
            self._finished[number] = stop.value

    def _try(self, number: int) -> bool:
        """Resumes a device and the others of its group, if the values that it waits for are available."""
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
        lines = [
            "deadlock: all devices of a group must reach the same collective:",
        ]
        for number in range(len(self._runs)):
            at = self._waiting.get(number)
            what = "has finished" if at is None else f"waits at {at.step.place}"
            lines.append(f"{self._named(number)} {what}")
        return "\n  ".join(lines)

    def _named(self, number: int) -> str:
        replica, partition = self._grid.place(number)
        return f"device {number} (replica {replica}, partition {partition})"
