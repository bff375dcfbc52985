// Drives the task loop of the MCP TypeScript SDK's client: `client.experimental.tasks.callToolStream`, which polls `tasks/get`.
//
//   node client-stream.mjs ALIAS SCENARIO      (SCENARIO: one object of scenarios.json)
//
// A run starts with the stream call, and so does the task's clock. It ends with the stream's last event.
// Taken down: every message that the client hands to its transport.

import { importFrom, identityOf } from './packages.mjs';
import { measure } from './measure.mjs';
import { InProcessServer } from './transport.mjs';

const [alias, scenarioText] = process.argv.slice(2);
const scenario = JSON.parse(scenarioText);
const { Client } = await importFrom(alias, 'dist/esm/client/index.js');
const { CallToolResultSchema } = await importFrom(alias, 'dist/esm/types.js');

async function connect(of) {
    const server = new InProcessServer(of);
    const options = of.client_default_ms === null ? {} : { defaultTaskPollInterval: of.client_default_ms };
    const client = new Client({ name: 'live', version: '1' }, { capabilities: {}, ...options });
    await client.connect(server);
    await client.listTools(); // tells the client that the tool can be a task
    return { client, server };
}

async function once(run) {
    const { client, server } = await connect(scenario);
    run.start = performance.now();
    server.run = run;
    const options = { task: {}, signal: run.abortSignal() };
    for await (const event of client.experimental.tasks.callToolStream({ name: 'work', arguments: {} }, CallToolResultSchema, options)) {
        if (event.type === 'result') run.end('result');
        if (event.type === 'error') run.endWithError(event.error);
    }
}

const calm = await connect({ ...scenario, hints: ['1000'], create_hint: '1000' });
const request = () => calm.client.experimental.tasks.getTask('task-1');
await measure({ program: 'npm/client-stream', ...identityOf(alias) }, scenario, once, request);
