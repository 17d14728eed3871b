/** API keys over HTTP: the whole way from a login to a refused key, on stores in memory. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { KeyUses } from '../../src/identity/audit.ts';
import { localActor } from '../support/identity/actors.ts';
import { bearer, jsonOf, openHttpWorld, type HttpWorld } from '../support/identity/http-world.ts';
import { runningJob } from '../support/fakes/control.ts';
import { createKeyProcess } from '../support/identity/keys.ts';
import { createIdentityWorld } from '../support/identity/world.ts';

let world: HttpWorld;
/** The uses of keys that were counted. */
let uses: string[];

beforeEach(async () => {
  const people = createIdentityWorld({ allowed: ['any'] });
  uses = [];
  const { authenticateKey, attempts, operations } = createKeyProcess(people);
  const keyUses: Pick<KeyUses, 'used'> = {
    used: (actor, ...use) => void uses.push([actor.keyName, ...use].filter((each) => each !== undefined).join(' ')),
  };
  world = await openHttpWorld({
    world: people,
    operations: { ...operations, getJob: async () => runningJob },
    identity: { authenticateKey, attempts, keyUses },
  });
});

const send = (method: string, path: string, token: string | undefined, body?: unknown) =>
  world.send(method, path, {
    headers: { ...(token !== undefined && bearer(token)), ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

async function create(token: string, body: object = { name: 'ci' }): Promise<{ readonly id: string; readonly secret: string }> {
  const answer = await send('POST', '/v1/api-keys', token, body);
  expect(answer.status).toBe(201);
  const { key, secret } = jsonOf(answer) as { key: { id: string }; secret: string };
  return { id: key.id, secret };
}

describe('an API key over HTTP', () => {
  it('Fix: is refused at once by the process that revoked it, or disabled its owner', async () => {
    const admin = await world.tokenOf('admin');
    const [first, second] = [await create(admin), await create(admin)];
    const status = async ({ secret }: { readonly secret: string }) => (await send('GET', '/v1/buckets', secret)).status;
    expect([await status(first), await status(second)]).toEqual([200, 200]);
    expect((await send('DELETE', `/v1/admin/api-keys/${first.id}`, admin)).status).toBe(204);
    expect([await status(first), await status(second)]).toEqual([401, 200]);
    const owner = await world.tokenOf('user');
    const theirs = await create(owner);
    expect(await status(theirs)).toBe(200);
    const { user } = jsonOf(await send('GET', '/v1/session', owner)) as { user: { id: string } };
    expect((await send('PATCH', `/v1/admin/users/${user.id}`, admin, { disabled: true })).status).toBe(200);
    expect([await status(theirs), await status(second)]).toEqual([401, 200]);
    expect((await send('PATCH', `/v1/admin/users/${user.id}`, admin, { disabled: false })).status).toBe(200);
    expect(await status(theirs)).toBe(200);
    const body = { secret: theirs.secret };
    expect((await send('POST', '/v1/api-keys/revoke', undefined, body)).status).toBe(204);
    expect(await status(theirs)).toBe(401);
  });

  it('Fix: that only reads metrics leaves a record of its use, one that is refused does too, and one that calls a tool leaves those of its operations', async () => {
    const { secret } = await create(await world.tokenOf('admin'));
    for (const path of ['/metrics', '/readyz', '/v1/session', '/v1/buckets']) expect((await send('GET', path, secret)).status).toBe(200);
    expect((await send('GET', '/v1/admin/audit', secret)).status).toBe(403);
    const permitted = ['ci getMetrics', 'ci getReadiness', 'ci getSession', 'ci listBuckets'];
    expect(uses).toEqual([...permitted, 'ci listAudit authorization.denied']);
    uses.length = 0;
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search_objects' } };
    expect((await send('POST', '/mcp', secret, call)).text).toContain('"structuredContent"');
    expect(uses).toEqual(['ci sendMcpMessage', 'ci listBuckets', 'ci searchObjects']);
  });

  it('Bug: /v1/session answered 404 in the seconds for which a process remembers a revoked key. Fix: 401', async () => {
    const owner = await world.tokenOf('user');
    const { id, secret } = await create(owner);
    expect((await send('GET', '/v1/session', secret)).status).toBe(200);
    const another = createKeyProcess({ store: world.store, clock: world.clock });
    await another.operations.revokeAnyApiKey({ params: { id } }, another.contextOf(localActor));
    const answer = await send('GET', '/v1/session', secret);
    expect([answer.status, answer.headers['www-authenticate'], jsonOf(answer)['code']]).toEqual([401, 'Bearer', 'authentication.failed']);
  });

  it('is told from 14 days before its end', async () => {
    const { secret } = await create(await world.tokenOf('user'), { name: 'ci', expires_in_days: 14 });
    // clients begin with /v1/session; the others are an operation, a wrong request and one that the key may not send
    for (const path of ['/v1/session', '/v1/buckets', '/v1/buckets?wrong=1', '/v1/admin/audit', '/metrics'])
      expect((await send('GET', path, secret)).headers['tally-key-expires'], path).toBe('2026-01-16T03:04:05.000Z');
    expect((await send('GET', '/v1/session', undefined)).headers['tally-key-expires']).toBe(undefined);
    const { secret: later } = await create(await world.tokenOf('user'), { name: 'ci', expires_in_days: 15 });
    expect((await send('GET', '/v1/buckets', later)).headers['tally-key-expires']).toBe(undefined);
  });
});
