/** `tally mcp`, by the SDK's own client on streams in memory. */
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { describe, expect, it } from 'vitest';
import type { CliDependencies } from '../../src/cli/cli.ts';
import type { Client as RegistryClient } from '../../src/client/client.ts';
import { createClient } from '../../src/client/client.ts';
import type { Settings } from '../../src/settings/settings.ts';
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

const issuer = {
  TALLY_OIDC_ISSUER: 'https://id.example.com',
  TALLY_OIDC_CLIENT_ID: 'tally',
  TALLY_OIDC_ALLOWED: 'any',
  TALLY_INDEX_URL: 'sqlite:nowhere',
};

/** The credentials of nobody, or of somebody at a registry. */
const clientWith = (registry: { readonly url: string; readonly token: string } | undefined): RegistryClient => ({
  ...createClient({ folder: undefined }),
  registryOf: () => registry,
});

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
    expect(world.contexts.map(({ actor }) => actor)).toEqual([{ kind: 'local', user: 'alice', host: 'build-1' }]);
    world.nextFails(new TypeError('x is not a function'));
    const failed = await client.callTool({ name: 'list_buckets', arguments: {} });
    expect([failed.isError, JSON.stringify(failed.content)]).toEqual([true, expect.stringContaining('internal.unexpected')]);
    expect(JSON.stringify(failed.content)).not.toContain(' at ');
    stdin.end();
    expect(await ran).toEqual({ exitCode: 0, stdout: '', stderr: '' });
    const lines = written().trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { jsonrpc: string }).jsonrpc)).toEqual(lines.map(() => '2.0'));
    expect([world.opened(), world.closed()]).toEqual([1, 1]);
  });

  it('Fix: answers what stdin asked before it ended, and waits for no call that was cancelled', async () => {
    const { stdin, stdout, overrides } = createStreams();
    const gate = Promise.withResolvers<void>();
    const { operations } = createFakeControl();
    const openControl: CliDependencies['openControl'] = async () => ({
      operations: {
        ...operations,
        async searchObjects() {
          await gate.promise;
          return { items: [] };
        },
      },
      close: async () => undefined,
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

  it('bounds the searches of a program that asks for many at the same moment', async () => {
    const { stdin, stdout, overrides } = createStreams();
    let [running, most] = [0, 0];
    const gate = Promise.withResolvers<void>();
    const { operations } = createFakeControl();
    const openControl: CliDependencies['openControl'] = async () => ({
      operations: {
        ...operations,
        async searchObjects() {
          running += 1;
          most = Math.max(most, running);
          await gate.promise;
          running -= 1;
          return { items: [] };
        },
      },
      close: async () => undefined,
    });
    const ran = createCliWorld({ ...overrides, openControl }).run('mcp');
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StdioServerTransport(stdout, stdin));
    const calls = Array.from({ length: 110 }, () => client.callTool({ name: 'index_agreement', arguments: { bucket: 'photos' } }));
    // those that find no place in the line are refused while the others wait
    const refused = await calls.at(-1);
    expect(JSON.stringify(refused?.content)).toContain('request.overloaded');
    await expect.poll(() => running).toBe(4);
    gate.resolve();
    await Promise.all(calls);
    expect(most).toBe(4);
    stdin.end();
    await ran;
  });

  it('ends at Ctrl-C', async () => {
    const { stdin, stdout, overrides } = createStreams();
    const world = createCliWorld(overrides);
    const ran = world.run('mcp');
    await new Client({ name: 'test', version: '1' }).connect(new StdioServerTransport(stdout, stdin));
    world.interrupt();
    expect(await ran).toMatchObject({ exitCode: 130, stdout: '' });
  });

  it('with an issuer opens no store without a credential, and says what to do', async () => {
    const world = createCliWorld({ env: issuer, openClient: async () => clientWith(undefined) });
    const { exitCode, stdout, stderr } = await world.run('mcp');
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr).toContain('run `tally login https://HOST`');
    expect(world.opened()).toBe(0);
  });

  it('with an issuer asks the registry of the credential, although a store is here', async () => {
    const asked: (string | undefined)[] = [];
    const { operations } = createFakeControl();
    const openControl = async ({ TALLY_REGISTRY_URL: url }: Settings) => {
      asked.push(url);
      return { operations, close: async () => undefined };
    };
    const registry = { url: 'https://registry.example.com', token: 'qs_token' };
    const world = createCliWorld({ env: issuer, openControl, openClient: async () => clientWith(registry) });
    expect(await world.run('mcp')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(asked).toEqual(['https://registry.example.com']);
  });
});
