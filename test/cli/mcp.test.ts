/** `tally mcp`, by the SDK's own client on streams in memory, at a registry that listens. */
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFakeControl } from '../support/fakes/control.ts';
import { listenControlPlane } from '../support/servers/control-plane.ts';
import { createCliWorld } from './world.ts';

async function startMcp(operations = createFakeControl().checked) {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const listener = await listenControlPlane({ operations });
  onTestFinished(() => listener.close());
  const world = createCliWorld({ streams: () => ({ stdin, stdout }), registryOf: async () => ({ url: listener.url }) });
  const ran = world.run('mcp');
  const written: { readonly id?: unknown }[] = [];
  createInterface({ input: stdout }).on('line', (line) => written.push(JSON.parse(line) as { readonly id?: unknown }));
  const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  return { world, listener, ran, stdin, stdout, written, send };
}

describe('tally mcp', () => {
  it('answers what stdin asked before it ended', async () => {
    const gate = Promise.withResolvers<void>();
    const { checked } = createFakeControl();
    const { ran, stdin, written, send } = await startMcp({
      ...checked,
      async searchObjects() {
        await gate.promise;
        return { items: [] };
      },
    });
    send({ id: 1, method: 'tools/call', params: { name: 'search_objects', arguments: { q: 'cat' } } });
    send({ id: 2, method: 'tools/list' });
    stdin.end();
    await expect.poll(() => written.map(({ id }) => id)).toEqual([2]);
    gate.resolve();
    expect((await ran).exitCode).toBe(0);
    await expect.poll(() => written.map(({ id }) => id)).toEqual([2, 1]);
  });

  it('answers a request that the registry refuses, or does not receive, with an error, and a notification with nothing', async () => {
    const { listener, ran, stdin, written, send } = await startMcp();
    send({ id: 'a', method: 'ping', extra: 1 });
    await expect.poll(() => written).toMatchObject([{ id: 'a', error: { message: expect.stringContaining('Invalid JSON-RPC message') } }]);
    await listener.close();
    send({ method: 'notifications/initialized' });
    stdin.write('no message\n');
    send({ id: 7, method: 'ping' });
    stdin.end();
    expect(await ran).toMatchObject({ exitCode: 0, stderr: '' });
    expect(written.slice(1)).toMatchObject([{ id: 7, error: { message: expect.stringContaining('cannot be reached') } }]);
  });

  it('ends at Ctrl-C', async () => {
    const { world, ran, stdin, stdout } = await startMcp();
    await new Client({ name: 'test', version: '1' }).connect(new StdioServerTransport(stdout, stdin));
    world.interrupt();
    expect(await ran).toMatchObject({ exitCode: 130, stdout: '' });
  });
});
