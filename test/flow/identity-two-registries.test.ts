/** Processes on one store: what one of them revokes the others refuse. */
import { afterEach, describe, expect, it } from 'vitest';
import type { BrowserAnswer } from '../support/identity/browser.ts';
import { startRegistryWorld, type RegistryWorld } from '../support/identity/registry-world.ts';
import { until } from '../support/servers/aws.ts';
import { runTally } from '../support/servers/daemon.ts';
import { indexKinds, openIndex } from '../support/worlds/flow.ts';

const closes: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0).toReversed()) await close();
});

const jsonOf = ({ text }: BrowserAnswer) => JSON.parse(text) as Record<string, unknown>;

type Registry = Pick<RegistryWorld, 'send'>;

async function createKey({ send }: Registry, token: string): Promise<{ readonly id: string; readonly secret: string }> {
  const { key, secret } = jsonOf(await send('POST', '/v1/api-keys', { token, body: { name: 'two' } })) as {
    readonly key: { readonly id: string };
    readonly secret: string;
  };
  return { id: key.id, secret };
}

const statusAt = async ({ send }: Registry, token: string): Promise<number> => (await send('GET', '/v1/session', { token })).status;

async function userOf({ send }: Registry, token: string, address: string): Promise<string> {
  const { items } = jsonOf(await send('GET', '/v1/admin/users', { token })) as {
    readonly items: readonly { readonly id: string; readonly email: string }[];
  };
  return items.find(({ email }) => email === address)?.id ?? '';
}

describe('a registry and its operator', () => {
  it('end the same keys and sessions', async () => {
    const world = await startRegistryWorld();
    closes.push(() => world.close());
    const alice = await world.logIn('alice');
    const other = await createKey(world, alice.token);
    expect(await statusAt(world, other.secret)).toBe(200);
    const { token } = await world.logIn('root');
    const { id, secret } = await createKey(world, token);
    expect(await runTally(['admin', 'keys', 'revoke', id], world.operator)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Revoked'),
    });
    await until('the key is refused', async () => (await statusAt(world, secret)) === 401);
    const user = await userOf(world, token, 'alice@example.com');
    expect(await runTally(['admin', 'users', 'disable', user], world.operator)).toMatchObject({ code: 0 });
    expect(await statusAt(world, alice.token)).toBe(401);
    await until('the keys of the user are refused', async () => (await statusAt(world, other.secret)) === 401);
    expect(await runTally(['admin', 'users', 'enable', user], world.operator)).toMatchObject({ code: 0 });
    expect(await statusAt(world, alice.token)).toBe(401);
    await until('the keys are accepted again', async () => (await statusAt(world, other.secret)) === 200);
  });
});

describe.skipIf(!indexKinds.includes('opensearch'))('two registries on one OpenSearch', () => {
  it('share logins, keys, revocations and disabled users', async () => {
    const index = await openIndex('opensearch');
    closes.push(() => index.close());
    const first = await startRegistryWorld(index.env);
    closes.push(() => first.close());
    const second = await first.another({ TALLY_TRUSTED_PROXIES: '127.0.0.1/32' });
    const [{ token: alice }, { token: root }] = [await first.logIn('alice'), await second.logIn('root')];
    const { id, secret } = await createKey(second, alice);
    const leaked = await createKey(first, alice);
    for (const registry of [first, second]) {
      for (const token of [alice, secret, leaked.secret]) expect(await statusAt(registry, token)).toBe(200);
    }
    const revoked = await first.send('DELETE', `/v1/admin/api-keys/${id}`, { token: root });
    expect(revoked.status, revoked.text).toBe(204);
    expect((await second.send('POST', '/v1/api-keys/revoke', { body: { secret: leaked.secret } })).status).toBe(204);
    await until(
      'the other process refuses both',
      async () => (await statusAt(second, secret)) === 401 && (await statusAt(first, leaked.secret)) === 401,
    );

    // only the proxy's own part of X-Forwarded-For counts, and only where the proxy is trusted
    const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' };
    for (const [{ send }, name] of [
      [first, 'untrusted'],
      [second, 'trusted'],
    ] as const)
      expect((await send('POST', '/v1/api-keys', { token: alice, body: { name }, headers })).status).toBe(201);
    const records = async (): Promise<readonly Record<string, unknown>[]> => {
      const audit = jsonOf(await first.send('GET', '/v1/admin/audit?event=ApiKeyCreate', { token: root }));
      return audit['items'] as Record<string, unknown>[];
    };
    await until('the audit lists the acts', async () => JSON.stringify(await records()).includes('"trusted"'));
    const addresses = new Map(
      (await records()).map((record) => [(record['parameters'] as { name?: string }).name, record['sourceipaddress']]),
    );
    expect([addresses.get('untrusted'), addresses.get('trusted')]).toEqual(['127.0.0.1', '203.0.113.9']);

    const user = await userOf(first, root, 'alice@example.com');
    expect((await first.send('PATCH', `/v1/admin/users/${user}`, { token: root, body: { disabled: true } })).status).toBe(200);
    // a session is read with its user at each request
    expect(await statusAt(second, alice)).toBe(401);
    expect((await first.send('POST', '/login/logout', { token: root })).status).toBe(204);
    expect(await statusAt(second, root)).toBe(401);
  });
});
