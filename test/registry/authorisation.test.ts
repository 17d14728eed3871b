/** The matrix: the example request of each row, as each kind of caller, who gets what the row's scope means. Each scope's meaning is that of docs/guides/login.md, written a second time. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { rows, type PlacedRow } from '../../src/registry/contract/contract.ts';
import type { Scope } from '../../src/identity/authorise.rules.ts';
import { exampleRequest } from '../support/example-request.ts';
import { get } from '../support/identity/browser.ts';
import { bearer, jsonOf, someFiles, startHttpWorld, type HttpWorld } from '../support/identity/http-world.ts';
import { createFakeControl } from '../support/fakes/control.ts';
import { listenControlPlane } from '../support/servers/control-plane.ts';

/** The operator comes through the socket, and all others over HTTP. */
const callers = ['visitor', 'user', 'user key', 'admin', 'admin key', 'admin key (read)', 'admin key (operate)', 'operator'] as const;
type Caller = (typeof callers)[number];

/** What a caller gets: the operation, or the code of the refusal. */
type Cell = 'yes' | '401' | 'denied' | 'session';

/** What each scope means; one that is missing here does not compile. */
const table: Readonly<Record<Scope, readonly Cell[]>> = {
  none: ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'],
  read: ['401', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'],
  self: ['401', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'],
  session: ['401', 'yes', 'session', 'yes', 'session', 'session', 'session', 'yes'],
  operate: ['401', 'denied', 'denied', 'yes', 'yes', 'denied', 'yes', 'yes'],
  admin: ['401', 'denied', 'denied', 'yes', 'yes', 'denied', 'denied', 'yes'],
  monitor: ['401', 'denied', 'denied', 'yes', 'yes', 'yes', 'yes', 'yes'],
  people: ['401', 'denied', 'session', 'yes', 'session', 'session', 'session', 'yes'],
};

const answers: Readonly<Record<Cell, readonly [number, string]>> = {
  yes: [0, ''],
  '401': [401, 'authentication.failed'],
  denied: [403, 'authorization.denied'],
  session: [403, 'session.required'],
};

/** Answers of operations that anyone may call, and that need more than the example: nothing of them is a refusal of the caller. */
const unmet = new Set(['login.expired', 'login.invalid-grant', 'request.forbidden-origin']);

let world: HttpWorld;
let folder: string;
let tokens: Readonly<Record<Caller, string | undefined>>;

async function newTokens() {
  return {
    visitor: undefined,
    operator: undefined,
    user: await world.tokenOf('user'),
    admin: await world.tokenOf('admin'),
    'user key': world.keyOf('user', ['read']),
    'admin key': world.keyOf('admin', ['read', 'operate', 'admin']),
    'admin key (read)': world.keyOf('admin', ['read']),
    'admin key (operate)': world.keyOf('admin', ['read', 'operate']),
  };
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tally-matrix-'));
  world = await startHttpWorld();
  await world.listenAtSocket(join(folder, 'tally.sock'));
  tokens = await newTokens();
});
afterAll(async () => {
  await world.close();
  rmSync(folder, { recursive: true });
});

function sendExample(row: PlacedRow, caller: Caller) {
  const { path, headers, ...rest } = exampleRequest(row);
  const token = tokens[caller];
  const door = caller === 'operator' ? { socketPath: join(folder, 'tally.sock') } : {};
  return world.send(row.method, path, { headers: { ...headers, ...(token !== undefined && bearer(token)) }, ...rest, ...door });
}

describe.each(rows.map((row) => [row.operation, row] as const))('%s', (operation, row) => {
  it.each(callers.map((caller, index) => [caller, table[row.scope][index]!] as const))('%s: %s', async (caller, cell) => {
    const before = world.fake.asked.length;
    const answer = await sendExample(row, caller);
    const problem = String(answer.headers['content-type']).startsWith('application/problem+json')
      ? (JSON.parse(answer.text) as { readonly code: string })
      : { code: '' };
    if (cell === 'yes') {
      if (!unmet.has(problem.code)) expect([answer.status, answer.text]).toEqual([row.status, answer.text]);
    } else {
      expect([answer.status, problem.code]).toEqual(answers[cell]);
      // nothing was begun
      expect(world.fake.asked.length).toBe(before);
    }
    if (cell === '401') {
      expect(answer.headers['www-authenticate']).toBe('Bearer');
      expect(answer.text).toContain('Authentication failed. Check your credentials or API key.');
    }
    if (operation === 'logOut') tokens = await newTokens();
  });
});

it('the operations learn who calls', async () => {
  await world.send('GET', '/v1/buckets', { headers: bearer(tokens.admin!) });
  expect(world.fake.contexts.at(-1)?.actor).toMatchObject({
    kind: 'session',
    email: 'admin@example.com',
    role: 'admin',
    address: '127.0.0.1',
  });
  await world.send('GET', '/v1/buckets', { headers: bearer(tokens['user key']!) });
  expect(world.fake.contexts.at(-1)?.actor).toMatchObject({ kind: 'api_key', keyName: 'ci 2026', role: 'user', address: '127.0.0.1' });
});

it('Fix: without an issuer no credential can be checked, so one that is sent is refused, by each operation that needs a caller', async () => {
  const fake = createFakeControl();
  const plane = await listenControlPlane({ operations: fake.checked, loadPanel: someFiles });
  onTestFinished(() => plane.close());
  // of whatever form: anything is one
  for (const authorization of [`Bearer qk_${'a'.repeat(49)}`, ''])
    for (const row of rows.filter(({ scope }) => scope !== 'none')) {
      const { path, headers, ...rest } = exampleRequest(row);
      const answer = await get(`${plane.url}${path}`, { method: row.method, headers: { ...headers, authorization }, ...rest });
      const detail = 'Authentication failed. Check your credentials or API key.';
      expect([row.operation, answer.status, answer.headers['www-authenticate']]).toEqual([row.operation, 401, 'Bearer']);
      expect(jsonOf(answer)).toMatchObject({ detail });
    }
  expect(fake.asked).toEqual([]);
  // but not the cookie of another registry, which browsers send to every port
  const cookies = new Map([['tally-8080', `qb_${'a'.repeat(43)}`]]);
  expect((await get(`${plane.url}/v1/session`, { cookies })).status).toBe(200);
});
