/** `tally mcp`, by the SDK's own client on streams in memory. */
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { describe, expect, it } from 'vitest';
import type { CliDependencies } from '../../src/cli/cli.ts';
import { createFakeControl } from '../support/fakes/control.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createCliWorld } from './world.ts';

function createStreams() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const written: string[] = [];
  stdout.on('data', (chunk: Buffer) => written.push(chunk.toString()));
  // a clock that stands still: no call is late
  const overrides = { streams: () => ({ stdin, stdout }), clock: createFakeClock() };
  return { stdin, stdout, overrides, written: () => written.join('') };
}

describe('tally mcp', () => {
  it('answers a program for the person who started it, writes nothing but the protocol, and ends with stdin', async () => {
    const { stdin, stdout, overrides, written } = createStreams();
    const world = createCliWorld(overrides);
    const ran = world.run('mcp');
    // both sides of this transport are the same
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StdioServerTransport(stdout, stdin));
    expect(client.getServerVersion()).toMatchObject({ name: 'tally', version: '1.2.3' });
    expect((await client.listTools()).tools).toHaveLength(6);
    const { structuredContent } = await client.callTool({ name: 'list_buckets', arguments: {} });
    expect(structuredContent).toMatchObject({ may_differ: false, items: [{ bucket: 'photos' }] });
    expect(world.contexts.map(({ actor }) => actor)).toEqual(
      Array.from({ length: 2 }, () => ({ kind: 'local', user: 'alice', host: 'build-1' })),
    );
    world.nextFails(new TypeError('x is not a function'));
    const failed = await client.callTool({ name: 'list_buckets', arguments: {} });
    expect([failed.isError, JSON.stringify(failed.content)]).toEqual([true, expect.stringContaining('internal.unexpected')]);
    expect(JSON.stringify(failed.content)).not.toContain(' at ');
    stdin.end();
    expect(await ran).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    const lines = written().trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { jsonrpc: string }).jsonrpc)).toEqual(lines.map(() => '2.0'));
    expect(world.opened()).toBe(1);
  });

  it('Fix: answers what stdin asked before it ended, and waits for no call that was cancelled', async () => {
    const { stdin, stdout, overrides } = createStreams();
    const gate = Promise.withResolvers<void>();
    const { operations } = createFakeControl();
    const openControl: CliDependencies['openControl'] = async () => ({
      ...operations,
      async searchObjects() {
        await gate.promise;
        return { items: [] };
      },
    });
    const lines = createInterface({ input: stdout });
    const answered: unknown[] = [];
    lines.on('line', (line) => answered.push((JSON.parse(line) as { readonly id: unknown }).id));
    const ran = createCliWorld({ ...overrides, openControl }).run('mcp');
    const send = (message: object) => stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const client = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    send({ id: 1, method: 'initialize', params: client });
    send({ method: 'notifications/initialized' });
    for (const id of [2, 3]) send({ id, method: 'tools/call', params: { name: 'search_objects', arguments: { q: 'cat' } } });
    send({ method: 'notifications/cancelled', params: { requestId: 3 } });
    send({ id: 4, method: 'tools/list' });
    stdin.end();
    await expect.poll(() => answered, { timeout: 60_000 }).toEqual([1, 4]);
    gate.resolve();
    expect((await ran).exitCode).toBe(0);
    await expect.poll(() => answered).toEqual([1, 4, 2]);
  });

  it('ends at Ctrl-C', async () => {
    const { stdin, stdout, overrides } = createStreams();
    const world = createCliWorld(overrides);
    const ran = world.run('mcp');
    await new Client({ name: 'test', version: '1' }).connect(new StdioServerTransport(stdout, stdin));
    world.interrupt();
    expect(await ran).toMatchObject({ exitCode: 130, stdout: '' });
  });
});
