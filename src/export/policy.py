"""{{ name }}: how long a host waits between two polls of a task.

Written by pollpace {{ version }} (`pollpace policies export {{ name }} --to python`), which simulates the same policy.
It needs no package, no clock and no timer: ask `decide` after each answer, wait so long, poll.

    state = State()
    step = decide(state, "created", task.get("pollInterval", ABSENT), secrets.randbits(64))
    # sleep step.wait_ms, send tasks/get, then
    step = decide(state, "unchanged", answer.get("pollInterval", ABSENT), secrets.randbits(64))

Left to the host's loop: {{ left }}.
{% for limit in limits %}Not said by it: {{ limit }}.
{% endfor %}"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

# Spans are in milliseconds; null is none.
PARAMETERS: dict[str, Any] = json.loads(
    r"""
{{ parameters }}
"""
)
P = PARAMETERS

# The hint of an answer that has none. A JSON null is None.
ABSENT = object()

# Times are whole nanoseconds.
FOREVER = 1 << 62
MAX_I32_MS = 2147483647
MAX_I64_NS_IN_MS = {{ max_i64_ns_in_ms }}


@dataclass
class State:
    """What the loop of one task remembers between answers."""

    kept: int = 0
    kept_from: Optional[str] = None
    creation: int = 0
    creation_from: Optional[str] = None
    previous: int = 0
    waits: int = 0
    errors: int = 0
    slow_downs: int = 0
    questions: int = 0
    asked: int = 0


class Decision(NamedTuple):
    """What the host does next: "wait", "await_result" or "end"."""

    kind: str
    wait_ns: int = 0
    why: str = ""

    @property
    def wait_ms(self) -> float:
        """Infinite where the host never polls again."""
        return math.inf if self.wait_ns >= FOREVER else self.wait_ns / 1e6


def _ns(ms: float) -> int:
    x = ms * 1e6 + 0.5
    if not x > 0:
        return 0
    return FOREVER if x >= 2.0**62 else int(x)


def _or_forever(ms: Optional[float]) -> int:
    return FOREVER if ms is None else _ns(ms)


DEFAULT = _ns(P["default_ms"])
FLOOR = _ns(P["floor_ms"])
CEILING = _or_forever(P["ceiling_ms"])


def _is_number(hint: Any) -> bool:
    return isinstance(hint, (int, float)) and not isinstance(hint, bool)


def _number(hint: Any) -> float:
    """A JSON number as a float, infinite beyond the range."""
    try:
        return float(hint)
    except OverflowError:
        return math.inf if hint > 0 else -math.inf


def _class(hint: Any) -> str:
    if hint is ABSENT:
        return "absent"
    if hint is None:
        return "null"
    if not _is_number(hint):
        return "text"
    ms = _number(hint)
    if not math.isfinite(ms):
        return "non_finite"
    if ms < 0:
        return "negative"
    if ms == 0:
        return "zero"
    if ms > MAX_I64_NS_IN_MS:
        return "beyond_i64_ns"
    if ms > MAX_I32_MS:
        return "beyond_i32_ms"
    return "sane" if ms == math.floor(ms) else "fractional"


def _whole(ms: float) -> bool:
    return math.isinf(ms) or (not math.isnan(ms) and ms == math.trunc(ms))


def _matches(rule: dict[str, Any], hint: Any, name: str) -> bool:
    ms = _number(hint) if hint is not ABSENT and _is_number(hint) else None
    json_type = rule["json"]
    fits = (
        json_type is None
        or (json_type == "number" and ms is not None)
        or (json_type == "integer" and ms is not None and _whole(ms))
        or (json_type == "string" and name == "text")
        or (json_type == "null" and name == "null")
    )
    needs_number = rule["then"] in ("use", "round", "truncate", "wrap_i64_ns")
    return (
        fits
        and (ms is not None or not needs_number)
        and rule["class"] in (None, name)
        and (rule["min"] is None or (ms is not None and ms >= rule["min"]))
        and (rule["max"] is None or (ms is not None and ms <= rule["max"]))
    )


def _outcome(hint: Any, name: str) -> str:
    for rule in P["rules"]:
        if _matches(rule, hint, name):
            return rule["then"]
    # The envelope's own.
    if name == "zero":
        return "floor"
    return "use" if name in ("sane", "beyond_i32_ms", "beyond_i64_ns") else "default"


class _End(Exception):
    """The hint ends the loop."""


def _changed(before: float, after: float) -> tuple[int, str]:
    return _ns(after), "hint" if before == after else "bad_hint"


def _cut(ms: float) -> float:
    return float(math.trunc(ms)) if math.isfinite(ms) else ms


def _wrapped(ms: float) -> int:
    """Nanoseconds that overflow 64 bits without a word."""
    if not math.isfinite(ms) or abs(ms) >= 2.0**127:
        return 0
    low = (math.trunc(ms) * 1_000_000) & (2**64 - 1)
    return 0 if low >= 2**63 else low


_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _classify(state: State, hint: Any) -> tuple[int, str]:
    if P["role"] == "ignored":
        return DEFAULT, "default"
    name = _class(hint)
    ms = _number(hint) if hint is not ABSENT and _is_number(hint) else 0.0
    replaced = "default" if name in ("absent", "null") else "bad_hint"
    then = _outcome(hint, name)
    if then == "use":
        return _ns(ms), "hint"
    if then == "absent":
        return DEFAULT, "default"
    if then == "floor":
        return FLOOR, replaced
    if then == "ceiling":
        return CEILING, replaced
    if then == "round":
        return _changed(ms, float(round(ms)) if math.isfinite(ms) else ms)
    if then == "truncate":
        return _changed(ms, _cut(ms))
    if then == "parse":
        if name != "text" and hint is not None and hint is not ABSENT:
            return _ns(ms), "hint"
        text = hint.strip(" \t\n\r\f") if isinstance(hint, str) else ""
        value = float(text) if _DECIMAL.fullmatch(text) else math.nan
        return (_ns(value), "hint") if math.isfinite(value) else (DEFAULT, "bad_hint")
    if then == "wrap_i32_timer":
        return _changed(ms, _cut(ms)) if 1 <= ms <= MAX_I32_MS else (1_000_000, "bad_hint")
    if then == "wrap_i64_ns":
        value = _wrapped(ms)
        return value, "hint" if value == _ns(ms) else "bad_hint"
    if then == "forever":
        return FOREVER, "bad_hint"
    if then == "forget":
        state.kept_from = None
        return DEFAULT, replaced
    if then == "error":
        raise _End("error")
    if then == "reject":
        raise _End("rejected")
    return DEFAULT, replaced


def _without_hint(state: State) -> tuple[int, str]:
    """What an answer without a hint means."""
    if P["read"] == "first_answer" or (P["read"] == "every_answer" and P["absent"] == "keep_last"):
        if state.kept_from:
            return state.kept, state.kept_from
    elif P["read"] == "creation" or P["absent"] == "creation":
        if state.creation_from:
            return state.creation, state.creation_from
    return DEFAULT, "default"


def _read_creation(state: State, hint: Any) -> tuple[int, str]:
    if P["read"] == "first_answer":
        return DEFAULT, "default"
    value, source = _classify(state, hint)
    if source != "default":
        state.creation, state.creation_from = value, source
        state.kept, state.kept_from = value, source
    return value, source


def _read_answer(state: State, hint: Any) -> tuple[int, str]:
    if P["read"] == "creation" or (P["read"] == "first_answer" and state.kept_from):
        return _without_hint(state)
    value, source = _classify(state, hint)
    if P["read"] == "every_answer" and source == "default":
        return _without_hint(state)
    forgets = P["role"] != "ignored" and _outcome(hint, _class(hint)) == "forget"
    if P["read"] == "first_answer" or (P["absent"] == "keep_last" and not forgets):
        state.kept, state.kept_from = value, source
    return value, source


def _grown(backoff: dict[str, Any], base: int, k: int) -> int:
    """Wait number `k` of a backoff."""
    kind = backoff["kind"]
    if kind == "geometric":
        first = base if backoff["initial_ms"] is None else _ns(backoff["initial_ms"])
        power = 1.0
        for _ in range(min(k, 63)):
            power *= backoff["factor"]
        wait = float(first) * power + 0.5
        cap = _or_forever(backoff["cap_ms"])
        return min(FOREVER if wait >= 2.0**63 else int(wait), cap)
    if kind == "additive":
        return min(base + _ns(backoff["step_ms"]) * k, _or_forever(backoff["cap_ms"]))
    if kind == "steps":
        until = 0
        for waits, wait in backoff["steps"]:
            until += waits
            if k < until:
                return _ns(wait)
        return _ns(backoff["steps"][-1][1])
    return base


def _part(span: int, u: int) -> int:
    return (span * u) >> 64


def _drawn(d: int, previous: int, u: int) -> int:
    jitter = P["jitter"]
    kind = jitter["kind"]
    if kind == "full":
        return _part(d, u)
    if kind == "equal":
        return d // 2 + _part(d - d // 2, u)
    if kind == "proportional":
        half = (d * int(math.floor(jitter["share"] * 4294967296.0 + 0.5))) >> 32
        return d - half + _part(2 * half + 1, u)
    if kind == "additive":
        return d + _part(_ns(jitter["span_ms"]), u)
    if kind == "minus":
        less = min(_ns(jitter["span_ms"]), d)
        return d - less + _part(less, u)
    if kind == "window":
        low = min(_ns(jitter["span_ms"]), d)
        return low + _part(d - low, u)
    if kind == "decorrelated":
        high = float(previous) * jitter["factor"]
        most = max(FOREVER if high >= 2.0**62 else int(high), d)
        return d + _part(most - d, u)
    return d


def _jittered(d: int, previous: int, u: int) -> int:
    step = _ns(P["jitter_step_ms"])
    if step == 0:
        return _drawn(d, previous, u)
    low, high = _drawn(d, previous, 0), d
    kind = P["jitter"]["kind"]
    if kind == "additive":
        high = d + _ns(P["jitter"]["span_ms"])
    elif kind in ("proportional", "decorrelated"):
        high = _drawn(d, previous, 2**64 - 1)
    return low + step * _part((high - low) // step + 1, u)


def _bounded(wait: int, ceiling: int) -> int:
    return min(max(wait, FLOOR), ceiling)


def _timed(wait: int) -> int:
    timer = P["timer"]
    minimum, maximum = _ns(timer["minimum_ms"]), _or_forever(timer["maximum_ms"])
    if wait > maximum:
        return {"minimum": minimum, "maximum": maximum}.get(timer["beyond"], FOREVER)
    if wait >= FOREVER:
        return FOREVER
    quantum = _ns(timer["quantum_ms"])
    return max(wait - wait % quantum if quantum > 1 else wait, minimum)


def _finish(state: State, wait: int, ceiling: int, u: int) -> Decision:
    slower = _ns(P["slow_down_ms"]) * state.slow_downs
    if slower > 0:
        wait = min(wait + slower, FOREVER)
    if P["bounds"] == "before_jitter":
        wait = _bounded(wait, ceiling)
    wait = _jittered(wait, max(state.previous, wait), u) if wait < FOREVER else FOREVER
    if P["bounds"] == "final":
        wait = _bounded(wait, ceiling)
    wait = _timed(wait)
    state.previous = wait
    return Decision("wait", wait)


def _shape(state: State, base: int, source: str, u: int) -> Decision:
    is_floor = P["role"] == "floor"
    passes = P["ceiling_covers"] == "own_terms"
    own, cause = (DEFAULT, "default") if is_floor else (base, source)
    ceiling = FOREVER if cause == "hint" and passes else CEILING
    within = _bounded(own, ceiling)
    k = state.waits
    state.waits = min(state.waits + 1, 65535)
    follows = P["backoff_of"] == "without_hint" and source != "default"
    backed = within if follows else _grown(P["backoff"], within, k)
    if P["role"] == "ramp_ceiling":
        backed = min(backed, within)
    if is_floor and source != "default":
        term = base if passes else min(base, CEILING)
        if term > backed:
            backed = term
            if passes:
                ceiling = FOREVER
    return _finish(state, backed, ceiling, u)


def _after_error(state: State, u: int) -> Decision:
    errors = state.errors
    state.errors = min(errors + 1, 255)
    if P["max_errors"] is not None and errors + 1 >= P["max_errors"]:
        return Decision("end", why="error")
    if P["backoff_reset"] == "on_change_or_error":
        state.waits = 0
    value, source = _without_hint(state)
    if P["on_error"] == "end":
        return Decision("end", why="error")
    backoff = P["error_backoff"]
    if backoff is None:
        return _shape(state, value, source, u)
    own = backoff["initial_ms"] is not None
    wait = _grown(backoff, value, errors if own else errors + 1)
    if backoff["sticks"]:
        now = min(value + _ns(P["slow_down_ms"]) * state.slow_downs, FOREVER)
        wait = _grown(backoff, now, errors if own else 1)
        state.slow_downs = 0
        state.kept, state.kept_from = wait, "error_backoff"
        state.creation, state.creation_from = wait, "error_backoff"
    if P["role"] == "floor" and source != "default":
        wait = max(wait, value)
    return _finish(state, wait, CEILING, u)


def _note_success(state: State, is_change: bool) -> None:
    backoff = P["error_backoff"]
    if backoff is None or backoff["reset"] != "never":
        state.errors = 0
    if is_change and P["backoff_reset"] != "never":
        state.waits = 0


def _on_question(state: State, hint: Any, is_new: bool, u: int) -> Decision:
    _note_success(state, is_new)
    try:
        reading, end = _read_answer(state, hint), None
    except _End as found:
        reading, end = (0, ""), str(found)
    if is_new:
        state.asked = 0
        state.questions = min(state.questions + 1, 255)
    state.asked = min(state.asked + 1, 255)
    too_many = P["max_questions"] is not None and state.questions > P["max_questions"]
    stuck = P["stuck_after"] is not None and state.asked > P["stuck_after"]
    if too_many or stuck or P["on_question"] == "ends":
        return Decision("end", why="question")
    if end is not None:
        return Decision("end", why=end)
    if P["on_question"] == "awaits_result":
        return Decision("await_result")
    if P["on_question"] == "polls_at_once":
        if P["backoff_reset"] != "never":
            state.waits = 0
        return Decision("wait", 0)
    if P["on_question"] == "polls_once_more" and is_new:
        return Decision("wait", 0)
    return _shape(state, *reading, u)


def decide(state: State, saw: str, hint: Any = ABSENT, u: int = 0, is_new: bool = False) -> Decision:
    """The host's decision after what it saw; `u` is uniform, a 64-bit fraction of one. It changes `state`.

    `saw` is "created" (the wait before the first poll), "unchanged", "changed" (an answer that is not the end), "asks" (the task
    asks for input; `is_new` where the host has not seen the question before), "error" (an error answer),
    "timed_out" (a request that was given up) or "slow_down" (a refusal because polls come too fast).
    """
    if saw == "error" or (saw == "timed_out" and P["on_timeout"] == "is_error"):
        return _after_error(state, u)
    if saw == "asks":
        return _on_question(state, hint, is_new, u)
    if saw in ("timed_out", "slow_down"):
        if saw == "slow_down":
            state.slow_downs = min(state.slow_downs + 1, 255)
        return _shape(state, *_without_hint(state), u)
    if saw == "created":
        first = P["first_poll"]
        try:
            reading = _read_creation(state, hint)
        except _End as end:
            # An error that the wait would raise is not raised where it is not slept.
            if str(end) == "rejected" or first["kind"] == "after_wait":
                return Decision("end", why=str(end))
        else:
            if first["kind"] == "after_wait":
                return _shape(state, *reading, u)
        state.previous = _ns(first.get("after_ms", 0))
        return Decision("wait", state.previous)
    if saw not in ("unchanged", "changed"):
        raise ValueError(f"unknown: {saw!r}")
    _note_success(state, saw == "changed")
    state.asked = 0
    try:
        reading = _read_answer(state, hint)
    except _End as end:
        return Decision("end", why=str(end))
    return _shape(state, *reading, u)
