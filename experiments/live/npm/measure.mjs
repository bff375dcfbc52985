// One measured run, the calibration beside it, and the loop over warm-ups and runs that every program shares.
//
// Times are milliseconds of `performance.now()`; those of a run count from its own start.

/** The middle value; of an even number of values the mean of the two in the middle. */
export function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A run's clock, what was sent in it, and how it ended. */
export class Run {
    constructor(scenario) {
        this.scenario = scenario;
        this.sends = [];
        this.ended = null;
        this.aborted = null;
        this.warnings = {};
        this.start = performance.now();
    }

    now() {
        return performance.now() - this.start;
    }

    sent(method) {
        this.sends.push([method, this.now()]);
    }

    /** The first ending counts: what follows it is what a loop does after it has given back control. */
    end(ending, error) {
        if (this.ended === null) this.ended = { at: this.now(), ending, error: error ? describe(error) : '' };
    }

    /** Aborts at the scenario's time, if it has one; returns the signal, or nothing. */
    abortSignal() {
        if (this.scenario.abort_at_ms === null) return undefined;
        const controller = new AbortController();
        setTimeout(() => {
            if (this.ended !== null) return;
            this.aborted = this.now();
            controller.abort();
        }, this.scenario.abort_at_ms);
        return controller.signal;
    }

    /** `aborted` if the abort came first, `error` if not. */
    endWithError(error) {
        this.end(this.aborted === null ? 'error' : 'aborted', error);
    }
}

function describe(error) {
    const code = error.code === undefined ? '' : ` ${error.code}`;
    const firstLine = String(error.message).split('\n').map(line => line.trim()).join(' ');
    return `${error.constructor.name}${code}: ${firstLine}`.slice(0, 160);
}

/** The hint of answer number `index`, as JSON text, or null where it has none; the last one holds on. */
export function hintOf(scenario, index) {
    return scenario.hints[Math.min(index, scenario.hints.length - 1)];
}

export function sleep(ms) {
    return new Promise(resolve => setTimeout(resolve, ms));
}

/**
 * A loop with no package around it, in this process: wait, make one request, and so on. Per wait, how late the timer fired (`timer`) and how
 * long the request took (`request`). `request` makes one request as the program's client does.
 */
async function calibrate(waits, request) {
    const rows = [];
    for (const wait of waits) {
        const late = [];
        const took = [];
        const samples = Math.min(60, Math.max(8, Math.round(400 / wait)));
        for (let i = 0; i < samples; i++) {
            const before = performance.now();
            await sleep(wait);
            const between = performance.now();
            await request();
            late.push(between - before - wait);
            took.push(performance.now() - between);
        }
        for (const [kind, values] of [['timer', late], ['request', took]]) {
            rows.push({ kind, wait_ms: wait, samples, median: median(values), min: Math.min(...values), max: Math.max(...values) });
        }
    }
    return rows;
}

/**
 * Warm-ups, the calibration, the counted runs: one JSON line each on stdout.
 * `once` makes one run and resolves when it is over; `request` is for the calibration.
 */
export async function measure(identity, scenario, once, request) {
    const line = value => process.stdout.write(JSON.stringify({ ...identity, scenario: scenario.name, ...value }) + '\n');
    let current = null;
    process.on('warning', warning => {
        if (current) current.warnings[warning.name] = (current.warnings[warning.name] ?? 0) + 1;
    });
    for (let number = 1 - scenario.warmups; number <= scenario.runs; number++) {
        if (number === 1) for (const row of await calibrate(scenario.calibrate_ms, request)) line({ calibration: row });
        current = new Run(scenario);
        await Promise.race([once(current), sleep(scenario.horizon_ms)]);
        current.end('horizon'); // unless it has ended otherwise
        await sleep(5); // what is sent on the way out still belongs to the run
        const { sends, ended, aborted, warnings } = current;
        if (number >= 1) line({ run: number, sends, ended, aborted, warnings });
    }
    process.exit(0); // timers of requests that are still open would keep the process
}
