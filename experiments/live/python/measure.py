"""One measured run, the calibration beside it, and the loop over warm-ups and runs that every program shares.

Times are milliseconds of `time.perf_counter`; those of a run count from its own start.
"""

import asyncio
import json
import statistics
import sys
import time
from importlib.metadata import version


class Run:
    """A run's clock, what was sent in it, and how it ended."""

    def __init__(self, scenario):
        self.scenario = scenario
        self.sends = []
        self.ended = None
        self.aborted = None
        self.restart()

    def restart(self):
        self.start = time.perf_counter()

    def now(self):
        return (time.perf_counter() - self.start) * 1000

    def sent(self, method):
        self.sends.append((method, self.now()))

    def end(self, ending, error=None):
        """The first ending counts."""
        if self.ended is None:
            self.ended = {"at": self.now(), "ending": ending, "error": "" if error is None else describe(error)}

    def end_with_error(self, error):
        """`aborted` if the abort came first, `error` if not."""
        self.end("error" if self.aborted is None else "aborted", error)

    async def until_over(self, work):
        """Awaits the coroutine `work`, cancels it at the scenario's abort, and takes down how it ended."""
        task = asyncio.ensure_future(self._ending_of(work))
        if self.scenario["abort_at_ms"] is not None:
            asyncio.get_running_loop().call_later(self.scenario["abort_at_ms"] / 1000, self._abort, task)
        await asyncio.wait([task])

    async def _ending_of(self, work):
        try:
            await work
            self.end("result")
        except (Exception, asyncio.CancelledError) as error:
            self.end_with_error(error)

    def _abort(self, task):
        if not task.done():
            self.aborted = self.now()
            task.cancel()

    def as_line(self, number):
        return {"run": number, "sends": self.sends, "ended": self.ended, "aborted": self.aborted, "warnings": {}}


def describe(error):
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:160] if text else type(error).__name__


def hint_of(scenario, index):
    """The hint of answer number `index`, as text, or None where it has none; the last one holds on."""
    return scenario["hints"][min(index, len(scenario["hints"]) - 1)]


def status_of(scenario, run):
    """The task's state at this moment, in the words of the scenarios."""
    if run is None or run.now() >= scenario["task_ms"]:
        return scenario["end_status"]
    if scenario["status_ms"] is not None and run.now() >= scenario["status_ms"]:
        return "working"
    return scenario["status"]


class Report:
    """Prints one JSON line per calibration row and run, each with what was run."""

    def __init__(self, program, package, scenario):
        self.head = {"program": program, "package": package, "version": version(package), "scenario": scenario["name"]}

    def line(self, value):
        print(json.dumps({**self.head, **value}), flush=True)

    def calibration(self, wait_ms, rounds):
        for kind, values in zip(("timer", "request"), zip(*rounds)):
            row = {"kind": kind, "wait_ms": wait_ms, "samples": len(values)}
            self.line({"calibration": {**row, "median": statistics.median(values), "min": min(values), "max": max(values)}})


def samples_for(wait_ms):
    return 60 if wait_ms == 0 else min(60, max(8, round(400 / wait_ms)))


def measure(program, package, scenario, once, request):
    """Blocking programs: `once(run)` makes a run, `request()` one bare request."""
    report = Report(program, package, scenario)
    for number in range(1 - scenario["warmups"], scenario["runs"] + 1):
        if number == 1:
            for wait_ms in scenario["calibrate_ms"]:
                report.calibration(wait_ms, [late_and_took(wait_ms, request) for _ in range(samples_for(wait_ms))])
        run = Run(scenario)
        once(run)
        if number >= 1:
            report.line(run.as_line(number))


def late_and_took(wait_ms, request):
    """One round of a loop with no package around it: how late the sleep ended, and how long a bare request took."""
    before = time.perf_counter()
    time.sleep(wait_ms / 1000)
    between = time.perf_counter()
    request()
    return (between - before) * 1000 - wait_ms, (time.perf_counter() - between) * 1000


async def measure_async(program, package, scenario, once, request, sleep):
    """Programs on an event loop; `sleep` is the sleep that the package uses."""
    report = Report(program, package, scenario)
    for number in range(1 - scenario["warmups"], scenario["runs"] + 1):
        if number == 1:
            for wait_ms in scenario["calibrate_ms"]:
                report.calibration(wait_ms, [await late_and_took_async(wait_ms, request, sleep) for _ in range(samples_for(wait_ms))])
        run = Run(scenario)
        try:
            await asyncio.wait_for(once(run), scenario["horizon_ms"] / 1000)
        except asyncio.TimeoutError:
            run.end("horizon")
        if number >= 1:
            report.line(run.as_line(number))


async def late_and_took_async(wait_ms, request, sleep):
    before = time.perf_counter()
    await sleep(wait_ms / 1000)
    between = time.perf_counter()
    await request()
    return (between - before) * 1000 - wait_ms, (time.perf_counter() - between) * 1000


def scenario_argument():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} SCENARIO, one object of scenarios.json")
    return json.loads(sys.argv[1])
