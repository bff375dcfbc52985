// Drives the two loops with which the MCP TypeScript SDK's server reads its own task store. The scenario's `call` says which:
//
//   plain    the client calls a tool without asking for a task; the tool is a task all the same (`taskSupport: "optional"`),
//            and the server polls its store until the task has ended
//   result   the client makes a task and asks for `tasks/result` at once; the server waits by polling its store
//
//   node server-poller.mjs ALIAS SCENARIO      (SCENARIO: one object of scenarios.json)
//
// A run starts with the request that is then waited for; the task's clock starts when the task is made. It ends, for the client, when the request
// settles; the store is watched until the task has ended and one more interval has passed.
// Taken down: every message of the client, and every read of the store: `store.getTask`, `store.getTaskResult`, and `store.getTask again` for
// a read in the same turn of the event loop as one before it, which is no poll of its own.

import { importFrom, identityOf } from './packages.mjs';
import { measure, sleep } from './measure.mjs';

const [alias, scenarioText] = process.argv.slice(2);
const scenario = JSON.parse(scenarioText);
const { Client } = await importFrom(alias, 'dist/esm/client/index.js');
const { McpServer } = await importFrom(alias, 'dist/esm/server/mcp.js');
const { InMemoryTransport } = await importFrom(alias, 'dist/esm/inMemory.js');
const { CallToolResultSchema, CreateTaskResultSchema } = await importFrom(alias, 'dist/esm/types.js');
const { InMemoryTaskStore, InMemoryTaskMessageQueue } = await importFrom(alias, 'dist/esm/experimental/tasks/stores/in-memory.js');

/**
 * The SDK's own store; it takes down reads once it has a run. Its tasks end by themselves. Where the scenario has no hint, it
 * has none either, as a custom store may (the SDK's own puts 1000 there).
 */
class WatchedStore extends InMemoryTaskStore {
    run = null;
    turnHasRead = false;

    async createTask(...args) {
        const task = await super.createTask(...args);
        if (scenario.create_hint === null) delete task.pollInterval; // the object is the store's own
        const result = { content: [{ type: 'text', text: 'done' }] };
        setTimeout(() => this.storeTaskResult(task.taskId, 'completed', result), scenario.task_ms).unref();
        return task;
    }

    async getTask(...args) {
        this.run?.sent(this.turnHasRead ? 'store.getTask again' : 'store.getTask');
        this.turnHasRead = true;
        setImmediate(() => (this.turnHasRead = false));
        return super.getTask(...args);
    }

    async getTaskResult(...args) {
        this.run?.sent('store.getTaskResult');
        return super.getTaskResult(...args);
    }
}

async function connect() {
    const store = new WatchedStore();
    const capabilities = { tools: {}, tasks: { requests: { tools: { call: {} } } } };
    const server = new McpServer(
        { name: 'live', version: '1' },
        { capabilities, taskStore: store, taskMessageQueue: new InMemoryTaskMessageQueue() },
    );
    const handlers = {
        createTask: async extra => ({ task: await extra.taskStore.createTask({ pollInterval: createHint() }) }),
        getTask: async extra => extra.taskStore.getTask(extra.taskId),
        getTaskResult: async extra => extra.taskStore.getTaskResult(extra.taskId),
    };
    server.experimental.tasks.registerToolTask('work', { description: 'work', execution: { taskSupport: 'optional' } }, handlers);
    const [near, far] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: 'live', version: '1' }, { capabilities: {} });
    await Promise.all([server.connect(far), client.connect(near)]);
    const send = near.send.bind(near);
    near.send = (message, options) => {
        store.run?.sent(message.method ?? 'response');
        return send(message, options);
    };
    return { client, store };
}

function createHint() {
    return scenario.create_hint === null ? undefined : JSON.parse(scenario.create_hint);
}

async function createTask(client) {
    const params = { name: 'work', arguments: {}, task: {} };
    return (await client.request({ method: 'tools/call', params }, CreateTaskResultSchema)).task.taskId;
}

async function once(run) {
    const { client, store } = await connect();
    const taskId = scenario.call === 'result' ? await createTask(client) : null;
    run.start = performance.now();
    store.run = run;
    const options = { signal: run.abortSignal() };
    const call =
        scenario.call === 'result'
            ? client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options)
            : client.callTool({ name: 'work', arguments: {} }, CallToolResultSchema, options);
    await call.then(
        () => run.end('result'),
        error => run.endWithError(error),
    );
    await sleep(Math.max(0, scenario.task_ms - run.now()) + scenario.watch_after_ms);
    store.run = null;
}

const calm = await connect();
const calmTask = await createTask(calm.client);
const request = () => calm.store.getTask(calmTask);
await measure({ program: 'npm/server-poller', ...identityOf(alias) }, scenario, once, request);
