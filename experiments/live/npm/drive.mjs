// Runs every npm scenario of scenarios.json (or only those whose name contains --only) and writes the three tables.
//
//   node drive.mjs OUT [--only TEXT]
//
// Rows of scenarios that are not run now stay in the tables as they are.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tables } from './tables.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const [out, flag, only = ''] = process.argv.slice(2);
if (!out || (flag !== undefined && flag !== '--only')) {
    console.error('usage: node drive.mjs OUT [--only TEXT]');
    process.exit(2);
}
const { programs, scenarios } = JSON.parse(readFileSync(join(here, '..', 'scenarios.json'), 'utf8'));
const tables = new Tables(out, scenarios);

for (const scenario of scenarios) {
    const { program, packages } = programs.find(entry => entry.program === scenario.program);
    if (!program.startsWith('npm/') || !scenario.name.includes(only)) continue;
    for (const { alias, package: name, version } of packages) {
        const command = ['--no-warnings', join(here, '..', `${program}.mjs`), alias, JSON.stringify(scenario)];
        const lines = execFileSync(process.execPath, command, { encoding: 'utf8', maxBuffer: 1 << 28 }).trim().split('\n').map(JSON.parse);
        if (lines[0].package !== name || lines[0].version !== version) {
            throw new Error(`${alias} is ${lines[0].package} ${lines[0].version}, and scenarios.json says ${name} ${version}`);
        }
        const runs = tables.replace(scenario, lines);
        const total = runs.map(run => run.total_ms).sort((a, b) => a - b)[runs.length >> 1];
        console.error(`${scenario.name} ${version}: ${runs.map(run => run.polls).join(' ')} polls, ${total} ms, ${runs[0].ending}`);
    }
}
tables.write();
