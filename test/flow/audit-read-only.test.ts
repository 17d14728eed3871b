/** An audit that takes no records: over HTTP every act of an administrator is refused and has changed nothing, while reading works. */
import { afterEach, expect, it } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { raw } from '../support/servers/opensearch.ts';
import { startRegistryWorld, type RegistryWorld } from '../support/identity/registry-world.ts';
import { opensearchUrl } from '../support/servers/found.ts';
import { openIndex, type TestIndex } from '../support/worlds/flow.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** Makes the audit of the index read-only, or writable again. Nothing else of the index is concerned. */
async function setReadOnly({ env }: TestIndex, isReadOnly: boolean): Promise<void> {
  const settings = { 'index.blocks.read_only': isReadOnly ? true : null };
  expect((await raw('PUT', `/${env['TALLY_INDEX_PREFIX'] ?? ''}-audit-*/_settings`, settings)).status).toBe(200);
}

interface Page {
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

/** Who requests the jobs that workers begin unasked, such as the first of a new bucket. */
const WORKERS: ReadonlySet<unknown> = new Set(['gap', 'schedule']);

/** What the acts below could change, as an administrator sees it. What the workers change meanwhile is left out. */
async function everything({ send }: RegistryWorld, token: string): Promise<readonly unknown[]> {
  const fields = {
    '/v1/buckets': ['bucket'],
    '/v1/jobs': ['id'],
    '/v1/admin/users': ['id', 'role', 'disabled_at'],
    '/v1/admin/api-keys': ['id', 'name', 'status'],
  };
  return Promise.all(
    Object.entries(fields).map(async ([path, names]) => {
      const { status, text } = await send('GET', path, { token });
      expect(status, text).toBe(200);
      const items = (JSON.parse(text) as Page).items.filter((item) => !WORKERS.has(item['requested_by']));
      return items.map((item) => names.map((name) => item[name]));
    }),
  );
}

it.skipIf(opensearchUrl() === undefined)(
  'while the audit is read-only, acts of administrators get 503 audit.unavailable and have changed nothing; afterwards they are done',
  async () => {
    const index = await openIndex('opensearch');
    stops.push(() => index.close());
    const world = await startRegistryWorld({ ...index.env, TALLY_INGEST_WAIT_S: '1' });
    stops.push(() => world.close());
    const { token } = await world.logIn('root');
    const { token: user } = await world.logIn('alice');
    const created = await world.send('POST', '/v1/api-keys', { token, body: { name: 'kept' } });
    const { key, secret } = JSON.parse(created.text) as { readonly key: { readonly id: string }; readonly secret: string };
    const { id: userId } = (JSON.parse((await world.send('GET', '/v1/session', { token: user })).text) as { user: { id: string } }).user;
    expect((await fetch(`${world.daemon.embeddedUrl}/photos`, { method: 'PUT' })).status).toBe(200);

    const acts: readonly (readonly [method: string, path: string, body?: object])[] = [
      ['POST', '/v1/buckets', { bucket: 'photos', reindex: false }],
      ['DELETE', '/v1/buckets/demo'],
      ['POST', '/v1/buckets/demo/reindex', { mode: 'report' }],
      ['PATCH', '/v1/admin/users/carol@example.com', { role: 'admin' }],
      ['PATCH', `/v1/admin/users/${userId}`, { disabled: true }],
      ['POST', '/v1/api-keys', { name: 'new' }],
      ['DELETE', `/v1/admin/api-keys/${key.id}`],
      ['POST', '/v1/api-keys/revoke', { secret }],
    ];
    // the daemon connects the bucket `demo` of its embedded S3 by itself, which begins a job of no administrator
    await until('the first job of demo', async () => /"job-/.test((await world.send('GET', '/v1/jobs', { token })).text));
    const before = await everything(world, token);
    await setReadOnly(index, true);
    for (const [method, path, body] of acts) {
      const { status, text } = await world.send(method, path, { token, body });
      expect([path, status, JSON.parse(text)]).toEqual([
        path,
        503,
        expect.objectContaining({ code: 'audit.unavailable', advice: expect.any(String) }),
      ]);
    }
    expect(await everything(world, token)).toEqual(before);
    // the key that was not revoked is valid, although its use cannot be recorded
    expect((await world.send('GET', '/v1/session', { token: secret })).status).toBe(200);
    await setReadOnly(index, false);
    for (const [method, path, body] of acts.toReversed()) {
      const { status, text } = await world.send(method, path, { token, body });
      // the key was revoked by its secret a moment ago
      const expected = path === `/v1/admin/api-keys/${key.id}` ? [404] : [200, 201, 202, 204];
      expect(expected, `${path}: ${text}`).toContain(status);
    }
  },
);
