// Drives the polling helper of the `openai` package for Node.js, `client.vectorStores.files.poll`, against an HTTP server on the loopback interface.
//
//   node openai-poll.mjs ALIAS SCENARIO      (SCENARIO: one object of scenarios.json)
//
// The server answers at once, with the scenario's hint as the header `openai-poll-after-ms`. A run starts with the call of the helper, and so does
// the task's clock; it ends when the helper settles. Taken down: every request that the client hands to `fetch`.

import { createServer } from 'node:http';
import { importFrom, identityOf } from './packages.mjs';
import { hintOf, measure } from './measure.mjs';

const [alias, scenarioText] = process.argv.slice(2);
const scenario = JSON.parse(scenarioText);
const { default: OpenAI } = await importFrom(alias, 'index.mjs');

// The scenarios' words for a task's state, as the service says them. `unknown` is a state that the helper does not know.
const STATUS = { working: 'in_progress', completed: 'completed', unknown: 'queued' };

let current = null; // the run that the server answers for
let answers = 0;

const server = createServer((request, response) => {
    const done = current !== null && current.now() >= scenario.task_ms;
    const hint = hintOf(scenario, answers++);
    response.setHeader('content-type', 'application/json');
    if (hint !== null) response.setHeader('openai-poll-after-ms', hint);
    response.end(
        JSON.stringify({
            id: 'file-1',
            object: 'vector_store.file',
            status: STATUS[done ? scenario.end_status : scenario.status],
            vector_store_id: 'vs-1',
            created_at: 1,
            usage_bytes: 0,
            last_error: null,
        }),
    );
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));

const client = new OpenAI({
    apiKey: 'none',
    baseURL: `http://127.0.0.1:${server.address().port}/v1`,
    maxRetries: 0,
    fetch: (url, init) => {
        current?.sent(init?.method?.toUpperCase() ?? 'GET');
        return fetch(url, init);
    },
});

async function once(run) {
    answers = 0;
    current = run;
    run.start = performance.now();
    const signal = run.abortSignal();
    await client.vectorStores.files.poll('vs-1', 'file-1', signal ? { signal } : {}).then(
        () => run.end('result'),
        error => run.endWithError(error),
    );
    current = null;
}

const request = () => client.vectorStores.files.retrieve('file-1', { vector_store_id: 'vs-1' });
await measure({ program: 'npm/openai-poll', ...identityOf(alias) }, scenario, once, request);
