// The server's side of an MCP connection, in the client's own process: a transport that answers every request itself.
//
// An answer comes in a microtask, so the round trip is the client's own processor time; or, with `round_trip_ms`, after two timers of half of
// that, with the task's state read between them. Answers are written as JSON text and parsed, so that a hint is what a wire would carry.

import { hintOf } from './measure.mjs';

const CREATED = '2026-01-01T00:00:00Z';

export class InProcessServer {
    /** `run` has the clock of the task and takes down what is sent; it may be null while the client connects. */
    constructor(scenario) {
        this.scenario = scenario;
        this.run = null;
        this.gets = 0;
    }

    async start() {}

    async close() {
        this.onclose?.();
    }

    async send(message) {
        this.run?.sent(message.method ?? 'response');
        if (message.id === undefined || message.method === undefined) return;
        const deliver = answer => this.onmessage?.(JSON.parse(answer));
        const half = this.scenario.round_trip_ms / 2;
        if (half === 0) {
            queueMicrotask(() => deliver(this.answer(message)));
        } else {
            setTimeout(() => {
                const answer = this.answer(message);
                setTimeout(() => deliver(answer), half);
            }, half);
        }
    }

    answer({ id, method, params }) {
        return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${this.result(method, params)}}`;
    }

    result(method, params) {
        switch (method) {
            case 'initialize':
                return JSON.stringify({
                    protocolVersion: params.protocolVersion,
                    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
                    serverInfo: { name: 'in-process', version: '1' },
                });
            case 'tools/list':
                return JSON.stringify({ tools: [{ name: 'work', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } }] });
            case 'tools/call':
                return `{"task":${this.task('working', this.scenario.create_hint)}}`;
            case 'tasks/get':
                return this.task(this.status(), hintOf(this.scenario, this.gets++));
            case 'tasks/result':
                return JSON.stringify({ content: [{ type: 'text', text: 'done' }] });
            default:
                throw new Error(`the in-process server has no answer to ${method}`);
        }
    }

    status() {
        return this.run && this.run.now() >= this.scenario.task_ms ? this.scenario.end_status : this.scenario.status;
    }

    task(status, hint) {
        const interval = hint === null ? '' : `,"pollInterval":${hint}`;
        return `{"taskId":"task-1","status":"${status}","ttl":null,"createdAt":"${CREATED}","lastUpdatedAt":"${CREATED}"${interval}}`;
    }
}
