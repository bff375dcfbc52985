// The three tables: sends.csv, runs.csv, calibration.csv. What the columns mean is in ../README.md.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { median } from './measure.mjs';

const COLUMNS = {
    'sends.csv': ['program', 'package', 'version', 'scenario', 'run', 'n', 'method', 'at_ms'],
    'runs.csv': [
        'program', 'package', 'version', 'scenario', 'run', 'polls', 'total_ms', 'gap_median_ms', 'gap_min_ms', 'gap_max_ms', 'abort_at_ms',
        'abort_latency_ms', 'cancelled_notices', 'tasks_cancel', 'polls_after_abort', 'ending', 'error', 'warnings',
    ],
    'calibration.csv': ['program', 'package', 'version', 'scenario', 'kind', 'wait_ms', 'samples', 'median_ms', 'min_ms', 'max_ms'],
};

/** What sends.csv keeps: of runs with more than LONG sends only the first one, and of that the first SENDS_KEPT. */
const LONG = 30;
const SENDS_KEPT = 60;

/** What counts as a poll, per program. */
const POLL = { 'npm/client-stream': 'tasks/get', 'npm/server-poller': 'store.getTask', 'npm/openai-poll': 'GET' };

export class Tables {
    constructor(folder, scenarios) {
        this.folder = folder;
        this.order = new Map(scenarios.map((scenario, index) => [scenario.name, index]));
        this.rows = Object.fromEntries(Object.keys(COLUMNS).map(file => [file, readTable(join(folder, file), COLUMNS[file])]));
    }

    /** Puts the rows of one program's output in place of those that the tables have for the same scenario, package and version. */
    replace(scenario, lines) {
        const { program, package: name, version } = lines[0];
        const head = { program, package: name, version, scenario: scenario.name };
        for (const file of Object.keys(COLUMNS)) {
            this.rows[file] = this.rows[file].filter(row => Object.keys(head).some(column => row[column] !== head[column]));
        }
        const runs = [];
        for (const line of lines) {
            if (line.calibration) {
                const { kind, wait_ms, samples, median: middle, min, max } = line.calibration;
                const times = { median_ms: fixed(middle), min_ms: fixed(min), max_ms: fixed(max) };
                this.rows['calibration.csv'].push({ ...head, kind, wait_ms, samples, ...times });
            } else {
                runs.push({ ...head, run: line.run, ...summary(line, POLL[program]) });
                const kept = line.sends.length <= LONG || line.run === 1 ? SENDS_KEPT : 0;
                line.sends.slice(0, kept).forEach(([method, at], n) =>
                    this.rows['sends.csv'].push({ ...head, run: line.run, n: n + 1, method, at_ms: fixed(at) }));
            }
        }
        this.rows['runs.csv'].push(...runs);
        return runs;
    }

    write() {
        mkdirSync(this.folder, { recursive: true });
        for (const [file, columns] of Object.entries(COLUMNS)) {
            const rows = [...this.rows[file]].sort((a, b) => this.order.get(a.scenario) - this.order.get(b.scenario) || byText(a.version, b.version));
            const lines = rows.map(row => columns.map(column => quote(String(row[column]))).join(','));
            writeFileSync(join(this.folder, file), [columns.join(','), ...lines].join('\n') + '\n');
        }
    }
}

function summary({ sends, ended, aborted, warnings }, pollMethod) {
    const polls = sends.filter(([method]) => method === pollMethod).map(([, at]) => at);
    const gaps = polls.slice(1).map((at, i) => at - polls[i]);
    const count = method => sends.filter(([sent]) => sent === method).length;
    return {
        polls: polls.length,
        total_ms: fixed(ended.at),
        gap_median_ms: gaps.length ? fixed(median(gaps)) : '',
        gap_min_ms: gaps.length ? fixed(Math.min(...gaps)) : '',
        gap_max_ms: gaps.length ? fixed(Math.max(...gaps)) : '',
        abort_at_ms: aborted === null ? '' : fixed(aborted),
        abort_latency_ms: aborted === null || ended.ending === 'horizon' ? '' : fixed(ended.at - aborted),
        cancelled_notices: count('notifications/cancelled'),
        tasks_cancel: count('tasks/cancel'),
        polls_after_abort: aborted === null ? '' : polls.filter(at => at > aborted).length,
        ending: ended.ending,
        error: ended.error,
        warnings: Object.entries(warnings).map(([name, times]) => `${name} x${times}`).join('; '),
    };
}

function fixed(ms) {
    return ms.toFixed(3);
}

function byText(a, b) {
    return a < b ? -1 : a > b ? 1 : 0;
}

function quote(field) {
    return /[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function readTable(path, columns) {
    if (!existsSync(path)) return [];
    const [head, ...rows] = parseCsv(readFileSync(path, 'utf8'));
    if (head.join() !== columns.join()) throw new Error(`${path} has the columns ${head}, and these programs write ${columns}`);
    return rows.map(fields => Object.fromEntries(columns.map((column, i) => [column, fields[i]])));
}

/** Fields in quotes may hold commas and doubled quotes, never line ends. */
function parseCsv(text) {
    return text.trimEnd().split('\n').map(line =>
        [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain));
}
