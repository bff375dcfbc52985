// {{ name }}: how long a host waits between two polls of a task.
//
// Written by pollpace {{ version }} (`pollpace policies export {{ name }} --to typescript`), which simulates the same policy.
// It needs no package, no clock and no timer: ask `decide` after each answer, wait so long, poll.
//
//   const state = newState();
//   const u = () => BigInt(Math.floor(Math.random() * 2 ** 53)) << 11n;
//   let next = decide(state, { kind: "created", hint: task.pollInterval }, u());
//   // sleep next.waitMs, send tasks/get, then
//   next = decide(state, { kind: "unchanged", hint: answer.pollInterval }, u());
//
// Left to the host's loop: {{ left }}.
{% for limit in limits %}// Not said by it: {{ limit }}.
{% endfor %}
/** Spans are in milliseconds; null is none. */
export const parameters = {{ parameters }} as const;

/** What the host saw. `hint` is the JSON value as it came: undefined where the key was not there. */
export type Saw =
  | { kind: "created" | "unchanged" | "changed"; hint?: unknown }
  /** The task asks for input; `isNew` where the host has not seen the question before. */
  | { kind: "asks"; hint?: unknown; isNew: boolean }
  /** An error answer. */
  | { kind: "error" }
  /** A request that was given up. */
  | { kind: "timed_out" }
  /** A refusal because polls come too fast. */
  | { kind: "slow_down" };

/** What the host does next; `waitMs` is Infinity where it never polls again. */
export type Decision =
  | { kind: "wait"; waitMs: number; waitNs: bigint }
  | { kind: "await_result" }
  | { kind: "end"; why: "error" | "rejected" | "question" };

type From = "hint" | "default" | "bad_hint" | "error_backoff";

/** What the loop of one task remembers between answers. */
export interface State {
  kept: bigint;
  keptFrom: From | null;
  creation: bigint;
  creationFrom: From | null;
  previous: bigint;
  waits: number;
  errors: number;
  slowDowns: number;
  questions: number;
  asked: number;
}

export function newState(): State {
  return {
    kept: 0n, keptFrom: null, creation: 0n, creationFrom: null, previous: 0n,
    waits: 0, errors: 0, slowDowns: 0, questions: 0, asked: 0,
  };
}

interface Rule { class: string | null; json: string | null; min: number | null; max: number | null; then: string }
interface Backoff {
  kind: string;
  initial_ms?: number | null; factor?: number; step_ms?: number; cap_ms?: number | null;
  steps?: readonly (readonly [number, number])[];
}
interface Jitter { kind: string; share?: number; span_ms?: number; factor?: number }
interface Parameters {
  role: string; read: string; absent: string; default_ms: number; floor_ms: number; ceiling_ms: number | null;
  ceiling_covers: string; bounds: string; rules: readonly Rule[]; backoff: Backoff; backoff_of: string; backoff_reset: string;
  on_error: string; on_timeout: string; error_backoff: (Backoff & { reset: string; sticks: boolean }) | null; max_errors: number | null;
  jitter: Jitter; jitter_step_ms: number; first_poll: { kind: string; after_ms?: number };
  timer: { quantum_ms: number; minimum_ms: number; maximum_ms: number | null; beyond: string };
  slow_down_ms: number; on_question: string; max_questions: number | null; stuck_after: number | null;
}
const P: Parameters = parameters;

// Times are whole nanoseconds.
const FOREVER = 1n << 62n;
const MAX_I32_MS = 2147483647;
const MAX_I64_NS_IN_MS = {{ max_i64_ns_in_ms }};

function ns(ms: number): bigint {
  const x = ms * 1e6 + 0.5;
  if (!(x > 0)) return 0n;
  return x >= 2 ** 62 ? FOREVER : BigInt(Math.floor(x));
}
const orForever = (ms: number | null | undefined): bigint => (ms == null ? FOREVER : ns(ms));
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const greatest = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const DEFAULT = ns(P.default_ms);
const FLOOR = ns(P.floor_ms);
const CEILING = orForever(P.ceiling_ms);

/** The class of a hint. */
function classOf(hint: unknown): string {
  if (hint === undefined) return "absent";
  if (hint === null) return "null";
  if (typeof hint !== "number") return "text";
  if (!Number.isFinite(hint)) return "non_finite";
  if (hint < 0) return "negative";
  if (hint === 0) return "zero";
  if (hint > MAX_I64_NS_IN_MS) return "beyond_i64_ns";
  if (hint > MAX_I32_MS) return "beyond_i32_ms";
  return Number.isInteger(hint) ? "sane" : "fractional";
}

function matches(rule: Rule, hint: unknown, name: string): boolean {
  const number = typeof hint === "number" ? hint : null;
  const json = rule.json === null
    || (rule.json === "number" && number !== null)
    || (rule.json === "integer" && number !== null && Math.trunc(number) === number)
    || (rule.json === "string" && name === "text")
    || (rule.json === "null" && hint === null);
  const needsNumber = ["use", "round", "truncate", "wrap_i64_ns"].includes(rule.then);
  return json
    && (!needsNumber || number !== null)
    && (rule.class === null || rule.class === name)
    && (rule.min === null || (number !== null && number >= rule.min))
    && (rule.max === null || (number !== null && number <= rule.max));
}

function outcome(hint: unknown, name: string): string {
  const rule = P.rules.find((r) => matches(r, hint, name));
  if (rule) return rule.then;
  // The envelope's own.
  if (name === "zero") return "floor";
  return ["sane", "beyond_i32_ms", "beyond_i64_ns"].includes(name) ? "use" : "default";
}

type Reading = { value: bigint; from: From } | { end: "error" | "rejected" };

function changed(before: number, after: number): Reading {
  return { value: ns(after), from: before === after ? "hint" : "bad_hint" };
}

/** Half to even. */
function rint(x: number): number {
  const down = Math.floor(x);
  const rest = x - down;
  if (rest !== 0.5) return rest < 0.5 ? down : down + 1;
  return down % 2 === 0 ? down : down + 1;
}

/** Nanoseconds that overflow 64 bits without a word. */
function wrapped(ms: number): bigint {
  if (!Number.isFinite(ms) || Math.abs(ms) >= 2 ** 127) return 0n;
  return greatest(BigInt.asIntN(64, BigInt(Math.trunc(ms)) * 1000000n), 0n);
}

function classify(state: State, hint: unknown): Reading {
  if (P.role === "ignored") return { value: DEFAULT, from: "default" };
  const name = classOf(hint);
  const ms = typeof hint === "number" ? hint : 0;
  const replaced: From = name === "absent" || name === "null" ? "default" : "bad_hint";
  switch (outcome(hint, name)) {
    case "use": return { value: ns(ms), from: "hint" };
    case "absent": return { value: DEFAULT, from: "default" };
    case "floor": return { value: FLOOR, from: replaced };
    case "ceiling": return { value: CEILING, from: replaced };
    case "round": return changed(ms, rint(ms));
    case "truncate": return changed(ms, Math.trunc(ms));
    case "parse": {
      if (typeof hint === "number") return { value: ns(hint), from: "hint" };
      const text = typeof hint === "string" ? hint.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "") : "";
      const number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : NaN;
      return Number.isFinite(number) ? { value: ns(number), from: "hint" } : { value: DEFAULT, from: "bad_hint" };
    }
    case "wrap_i32_timer":
      return ms >= 1 && ms <= MAX_I32_MS ? changed(ms, Math.trunc(ms)) : { value: 1000000n, from: "bad_hint" };
    case "wrap_i64_ns": {
      const value = wrapped(ms);
      return { value, from: value === ns(ms) ? "hint" : "bad_hint" };
    }
    case "forever": return { value: FOREVER, from: "bad_hint" };
    case "forget":
      state.keptFrom = null;
      return { value: DEFAULT, from: replaced };
    case "error": return { end: "error" };
    case "reject": return { end: "rejected" };
    default: return { value: DEFAULT, from: replaced };
  }
}

/** What an answer without a hint means. */
function withoutHint(state: State): { value: bigint; from: From } {
  if (P.read === "first_answer" || (P.read === "every_answer" && P.absent === "keep_last")) {
    if (state.keptFrom) return { value: state.kept, from: state.keptFrom };
  } else if (P.read === "creation" || P.absent === "creation") {
    if (state.creationFrom) return { value: state.creation, from: state.creationFrom };
  }
  return { value: DEFAULT, from: "default" };
}

function readCreation(state: State, hint: unknown): Reading {
  if (P.read === "first_answer") return { value: DEFAULT, from: "default" };
  const reading = classify(state, hint);
  if (!("end" in reading) && reading.from !== "default") {
    [state.creation, state.creationFrom] = [reading.value, reading.from];
    [state.kept, state.keptFrom] = [reading.value, reading.from];
  }
  return reading;
}

function readAnswer(state: State, hint: unknown): Reading {
  if (P.read === "creation" || (P.read === "first_answer" && state.keptFrom)) return withoutHint(state);
  const reading = classify(state, hint);
  if ("end" in reading) return reading;
  if (P.read === "every_answer" && reading.from === "default") {
    const remembered = withoutHint(state);
    return remembered.from === "default" ? reading : remembered;
  }
  const forgets = outcome(hint, classOf(hint)) === "forget";
  if (P.read === "first_answer" || (P.absent === "keep_last" && !forgets)) {
    [state.kept, state.keptFrom] = [reading.value, reading.from];
  }
  return reading;
}

/** Wait number `k` of a backoff. */
function grown(backoff: Backoff, base: bigint, k: number): bigint {
  const cap = orForever(backoff.cap_ms);
  switch (backoff.kind) {
    case "geometric": {
      const first = backoff.initial_ms == null ? base : ns(backoff.initial_ms);
      let power = 1;
      for (let i = 0; i < Math.min(k, 63); i++) power *= backoff.factor ?? 1;
      const wait = Number(first) * power + 0.5;
      return wait >= 2 ** 63 ? least(FOREVER, cap) : least(BigInt(Math.floor(wait)), cap);
    }
    case "additive": return least(base + ns(backoff.step_ms ?? 0) * BigInt(k), cap);
    case "steps": {
      let until = 0;
      for (const [waits, wait] of backoff.steps ?? []) {
        until += waits;
        if (k < until) return ns(wait);
      }
      const last = backoff.steps?.[backoff.steps.length - 1];
      return last ? ns(last[1]) : base;
    }
    default: return base;
  }
}

const part = (span: bigint, u: bigint): bigint => (span * u) >> 64n;

function drawn(d: bigint, previous: bigint, u: bigint): bigint {
  const span = ns(P.jitter.span_ms ?? 0);
  switch (P.jitter.kind) {
    case "full": return part(d, u);
    case "equal": return d / 2n + part(d - d / 2n, u);
    case "proportional": {
      const half = (d * BigInt(Math.round((P.jitter.share ?? 0) * 4294967296))) >> 32n;
      return d - half + part(2n * half + 1n, u);
    }
    case "additive": return d + part(span, u);
    case "minus": {
      const less = least(span, d);
      return d - less + part(less, u);
    }
    case "window": {
      const low = least(span, d);
      return low + part(d - low, u);
    }
    case "decorrelated": {
      const high = Math.floor(Number(previous) * (P.jitter.factor ?? 1));
      const most = greatest(high >= 2 ** 62 ? FOREVER : BigInt(high), d);
      return d + part(most - d, u);
    }
    default: return d;
  }
}

function jittered(d: bigint, previous: bigint, u: bigint): bigint {
  const step = ns(P.jitter_step_ms);
  if (step === 0n) return drawn(d, previous, u);
  const low = drawn(d, previous, 0n);
  const kind = P.jitter.kind;
  let high = d;
  if (kind === "additive") high = d + ns(P.jitter.span_ms ?? 0);
  if (kind === "proportional" || kind === "decorrelated") high = drawn(d, previous, (1n << 64n) - 1n);
  return low + step * part((high - low) / step + 1n, u);
}

const bounded = (wait: bigint, ceiling: bigint): bigint => least(greatest(wait, FLOOR), ceiling);

function timed(wait: bigint): bigint {
  const minimum = ns(P.timer.minimum_ms);
  const maximum = orForever(P.timer.maximum_ms);
  if (wait > maximum) {
    return P.timer.beyond === "minimum" ? minimum : P.timer.beyond === "maximum" ? maximum : FOREVER;
  }
  if (wait >= FOREVER) return FOREVER;
  const quantum = ns(P.timer.quantum_ms);
  return greatest(quantum > 1n ? wait - (wait % quantum) : wait, minimum);
}

function waits(waitNs: bigint): Decision {
  return { kind: "wait", waitNs, waitMs: waitNs >= FOREVER ? Infinity : Number(waitNs) / 1e6 };
}

function finish(state: State, backed: bigint, ceiling: bigint, u: bigint): Decision {
  let wait = backed;
  const slower = ns(P.slow_down_ms) * BigInt(state.slowDowns);
  if (slower > 0n) wait = least(wait + slower, FOREVER);
  if (P.bounds === "before_jitter") wait = bounded(wait, ceiling);
  wait = wait < FOREVER ? jittered(wait, greatest(state.previous, wait), u) : FOREVER;
  if (P.bounds === "final") wait = bounded(wait, ceiling);
  wait = timed(wait);
  state.previous = wait;
  return waits(wait);
}

function shape(state: State, base: bigint, from: From, u: bigint): Decision {
  const isFloor = P.role === "floor";
  const passes = P.ceiling_covers === "own_terms";
  const [own, cause] = isFloor ? [DEFAULT, "default"] : [base, from];
  let ceiling = cause === "hint" && passes ? FOREVER : CEILING;
  const within = bounded(own, ceiling);
  const k = state.waits;
  state.waits = Math.min(state.waits + 1, 65535);
  const follows = P.backoff_of === "without_hint" && from !== "default";
  let backed = follows ? within : grown(P.backoff, within, k);
  if (P.role === "ramp_ceiling") backed = least(backed, within);
  if (isFloor && from !== "default") {
    const term = passes ? base : least(base, CEILING);
    if (term > backed) {
      backed = term;
      if (passes) ceiling = FOREVER;
    }
  }
  return finish(state, backed, ceiling, u);
}

function ownStart(backoff: Backoff): boolean {
  return backoff.kind === "steps" || (backoff.kind === "geometric" && backoff.initial_ms != null);
}

function afterError(state: State, u: bigint): Decision {
  const errors = state.errors;
  state.errors = Math.min(errors + 1, 255);
  if (P.max_errors !== null && errors + 1 >= P.max_errors) return { kind: "end", why: "error" };
  if (P.backoff_reset === "on_change_or_error") state.waits = 0;
  const { value, from } = withoutHint(state);
  if (P.on_error === "end") return { kind: "end", why: "error" };
  const backoff = P.error_backoff;
  if (!backoff) return shape(state, value, from, u);
  const own = ownStart(backoff);
  let wait = grown(backoff, value, own ? errors : errors + 1);
  if (backoff.sticks) {
    const now = least(value + ns(P.slow_down_ms) * BigInt(state.slowDowns), FOREVER);
    wait = grown(backoff, now, own ? errors : 1);
    state.slowDowns = 0;
    [state.kept, state.keptFrom] = [wait, "error_backoff"];
    [state.creation, state.creationFrom] = [wait, "error_backoff"];
  }
  if (P.role === "floor" && from !== "default") wait = greatest(wait, value);
  return finish(state, wait, CEILING, u);
}

function noteSuccess(state: State, isChange: boolean): void {
  if (P.error_backoff?.reset !== "never") state.errors = 0;
  if (isChange && P.backoff_reset !== "never") state.waits = 0;
}

function onQuestion(state: State, hint: unknown, isNew: boolean, u: bigint): Decision {
  noteSuccess(state, isNew);
  const reading = readAnswer(state, hint);
  if (isNew) {
    state.asked = 0;
    state.questions = Math.min(state.questions + 1, 255);
  }
  state.asked = Math.min(state.asked + 1, 255);
  const tooMany = P.max_questions !== null && state.questions > P.max_questions;
  const stuck = P.stuck_after !== null && state.asked > P.stuck_after;
  if (tooMany || stuck || P.on_question === "ends") return { kind: "end", why: "question" };
  if ("end" in reading) return { kind: "end", why: reading.end };
  if (P.on_question === "awaits_result") return { kind: "await_result" };
  if (P.on_question === "polls_at_once") {
    if (P.backoff_reset !== "never") state.waits = 0;
    return waits(0n);
  }
  if (P.on_question === "polls_once_more" && isNew) return waits(0n);
  return shape(state, reading.value, reading.from, u);
}

/** The host's decision after what it saw; `u` is uniform, a 64-bit fraction of one. It changes `state`. */
export function decide(state: State, saw: Saw, u: bigint): Decision {
  if (saw.kind === "error" || (saw.kind === "timed_out" && P.on_timeout === "is_error")) return afterError(state, u);
  if (saw.kind === "asks") return onQuestion(state, saw.hint, saw.isNew, u);
  if (saw.kind === "timed_out" || saw.kind === "slow_down") {
    if (saw.kind === "slow_down") state.slowDowns = Math.min(state.slowDowns + 1, 255);
    const { value, from } = withoutHint(state);
    return shape(state, value, from, u);
  }
  if (saw.kind === "created") {
    const reading = readCreation(state, saw.hint);
    const first = P.first_poll;
    if ("end" in reading) {
      // An error that the wait would raise is not raised where it is not slept.
      if (reading.end === "rejected" || first.kind === "after_wait") return { kind: "end", why: reading.end };
    } else if (first.kind === "after_wait") {
      return shape(state, reading.value, reading.from, u);
    }
    state.previous = ns(first.after_ms ?? 0);
    return waits(state.previous);
  }
  noteSuccess(state, saw.kind === "changed");
  state.asked = 0;
  const reading = readAnswer(state, saw.hint);
  if ("end" in reading) return { kind: "end", why: reading.end };
  return shape(state, reading.value, reading.from, u);
}
