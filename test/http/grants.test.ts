/** When grants count and when they end, over HTTP: at the next request, whatever the caller holds already. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeCursor } from '../../src/domain/cursor.ts';
import { PARTS_MAX } from '../../src/domain/access/readable.ts';
import { nameOf } from '../../src/domain/documents/document.ts';
import { refs, updateRecord } from '../../src/pipeline/records/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { jsonOf } from '../support/identity/http-world.ts';
import { createKeyProcess, DAY_MS } from '../support/identity/keys.ts';
import { ADMIN, CLAIMS_DAYS, startReadersWorld, type ReadersWorld } from '../support/identity/readers-world.ts';

const BOB = 'bob@example.com';
const LONGEST = '\u0001'.repeat(1_024);
const keys = ['a/1', 'a/2', 'b/1', 'b/2', 'secret/plan.txt', LONGEST];
const AT = '2026-01-02T03:04:05.000Z';

let world: ReadersWorld;

beforeEach(async () => {
  world = await startReadersWorld();
  const { objects, state } = world.store;
  for (const bucket of ['photos', 'videos']) {
    await objects.createBucket(bucket);
    await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket));
    const fields = { bucket, deleted: false, clock: 1_000, settled: true, source: 'check', indexed_at: AT } as const;
    await objects.write(keys.map((key) => ({ document: { ...fields, key, ...nameOf(key), size: 1 }, equalClock: 'accept' })));
  }
});
afterEach(() => world.close());

interface Found {
  readonly items: readonly { readonly bucket: string; readonly key: string }[];
  readonly next?: string;
}

async function found(token: string, query = ''): Promise<Found> {
  const answer = await world.send(token, `/v1/objects?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return jsonOf(answer) as unknown as Found;
}
const places = ({ items }: Found): readonly string[] => items.map(({ bucket, key }) => `${bucket}/${key}`);
const read = async (token: string): Promise<readonly string[]> => places(await found(token));
const reads = async (token: string): Promise<unknown> => jsonOf(await world.send(token, '/v1/access'))['reads'];
const adviceTo = async (token: string): Promise<unknown> => jsonOf(await world.send(token, '/v1/access'))['advice'];

describe('a grant', () => {
  it('counts from the next request on, and its removal too, with the next page of a list that has begun', async () => {
    const bob = await world.logIn(BOB);
    expect(await read(bob)).toEqual([]);
    await world.grant(`user:${BOB}`, 'photos/a/', 'photos/b/', 'videos');
    const first = await found(bob, 'limit=1');
    expect(places(first)).toEqual(['photos/a/1']);
    await world.revoke(`user:${BOB}`, 'photos/b/');
    const second = await found(bob, `limit=2&cursor=${first.next}`);
    expect(places(second)).toEqual(['photos/a/2', `videos/${LONGEST}`]);
    await world.revoke(`user:${BOB}`, 'videos');
    expect(await found(bob, `limit=2&cursor=${second.next}`)).toEqual({ items: [] });
    const ofVideos = await world.send(bob, '/v1/objects?bucket=videos');
    expect([ofVideos.status, jsonOf(ofVideos)['code']]).toEqual([404, 'bucket.not-connected']);
    expect(await read(bob)).toEqual(['photos/a/1', 'photos/a/2']);
  });

  it('ends at the next request also where another process removes it', async () => {
    const another = createKeyProcess({ store: world.store, clock: world.clock });
    const context = another.contextOf(world.context.actor);
    const bob = await world.logIn(BOB);
    const body = { who: `user:${BOB}`, where: 'photos/a/' };
    for (const _ of [1, 2]) {
      await another.operations.addGrant({ body }, context);
      expect(await read(bob)).toEqual(['photos/a/1', 'photos/a/2']);
      await another.operations.removeGrant({ body }, context);
      expect(await read(bob)).toEqual([]);
    }
  });

  it('to an address does not count for one whom the issuer did not verify, until a login at which it did', async () => {
    await world.grant(`user:${BOB}`, 'photos/a/');
    await world.grant('everyone', 'videos/b/');
    await world.grant('group:analysts', 'photos/b/1');
    const unverified = await world.logIn(BOB, { email_verified: false, groups: ['analysts', `user:${BOB}`] });
    expect(await read(unverified)).toEqual(['photos/b/1', 'videos/b/1', 'videos/b/2']);
    expect(await reads(await world.keyOf(unverified))).toEqual(['photos/b/1', 'videos/b/']);
    const verified = await world.logIn(BOB);
    expect(await read(verified)).toEqual(['photos/a/1', 'photos/a/2', 'videos/b/1', 'videos/b/2']);
  });

  it('of too many parts gives none, says so to the person, and names the person to those who read the log', async () => {
    const bob = await world.logIn(BOB);
    const parts = Array.from({ length: PARTS_MAX + 1 }, (_, at) => `photos/${at}/`);
    await world.grant(`user:${BOB}`, ...parts.slice(1));
    expect(await reads(bob)).toHaveLength(PARTS_MAX);
    expect(await adviceTo(bob)).toBeUndefined();
    await world.grant(`user:${BOB}`, parts[0] ?? '');
    expect(await reads(bob)).toEqual([]);
    expect(await adviceTo(bob)).toContain(`More than ${PARTS_MAX}`);
    const warned = JSON.stringify(world.process.telemetry.facts);
    expect(warned).toContain('too many separate parts');
    expect(warned).toContain(BOB);
    await world.grant(`user:${BOB}`, 'photos');
    expect(await reads(bob)).toEqual(['photos']);
  });
});

describe('a cursor', () => {
  const lists = [
    '/v1/objects?',
    '/v1/objects?sort=size&order=desc&',
    '/v1/objects?query=size%3C9+-modified%3C9d&',
    '/v1/usage?bucket=photos&',
    '/v1/usage?bucket=photos&by=extension&',
    '/v1/buckets?',
    '/v1/admin/grants?',
    '/v1/admin/users?',
  ];

  it('tells nothing about what was on the page', async () => {
    const admin = await world.logIn(ADMIN);
    await world.logIn(BOB);
    await world.grant(`user:${BOB}`, 'photos', 'videos');
    for (const list of lists) {
      const nexts = [];
      for (const _ of [1, 2]) nexts.push(String(jsonOf(await world.send(admin, `${list}limit=1`))['next']));
      const [next = '', again] = nexts;
      expect(next, list).not.toBe('undefined');
      expect(again, list).not.toBe(next);
      const bytes = Buffer.from(next, 'base64url').toString('latin1');
      const inside = Buffer.from(bytes, 'base64').toString('latin1');
      for (const told of ['photos', 'videos', 'secret', 'example']) expect(next + bytes + inside, list).not.toContain(told);
    }
  });

  it('in the hands of another shows what that one may read', async () => {
    const [admin, bob, carl] = [await world.logIn(ADMIN), await world.logIn(BOB), await world.logIn('carl@example.com')];
    await world.grant(`user:${BOB}`, 'photos/a/', 'videos/b/');
    const { next } = await found(admin, 'limit=2');
    const ofBob = await found(bob, `limit=10&cursor=${next}`);
    expect(places(ofBob)).toEqual(['photos/a/2', 'videos/b/1', 'videos/b/2']);
    expect(await found(carl, `cursor=${next}`)).toEqual({ items: [] });
    const usage = jsonOf(await world.send(admin, '/v1/usage?bucket=photos&limit=1'));
    const rest = jsonOf(await world.send(bob, `/v1/usage?bucket=photos&limit=10&cursor=${String(usage['next'])}`));
    expect(rest['items']).toMatchObject([{ name: 'a/', objects: 2 }]);
    const buckets = jsonOf(await world.send(admin, '/v1/buckets?limit=1'));
    const named = jsonOf(await world.send(bob, `/v1/buckets?cursor=${String(buckets['next'])}`))['items'] as readonly object[];
    expect(named).toMatchObject([{ bucket: 'videos' }]);
    expect(jsonOf(await world.send(carl, `/v1/buckets?cursor=${String(buckets['next'])}`))['items']).toEqual([]);
  });

  it('of the longest key continues behind it', async () => {
    const admin = await world.logIn(ADMIN);
    for (const order of ['', 'sort=size&', 'sort=last_modified&order=desc&']) {
      const first = await found(admin, `${order}limit=1`);
      expect(places(first)).toEqual([`photos/${LONGEST}`]);
      expect(places(await found(admin, `${order}limit=1&cursor=${first.next}`))).toHaveLength(1);
    }
  });

  it.each([
    ['was never sealed', encodeCursor(['photos', 'a/1'])],
    ['is too short', 'AAAA'],
    ['was changed', undefined],
  ])('that %s is refused', async (_, text) => {
    const admin = await world.logIn(ADMIN);
    const { next = '' } = await found(admin, 'limit=1');
    const changed = `${next.slice(0, -2)}${next.endsWith('AA') ? 'BB' : 'AA'}`;
    const { status, text: body } = await world.send(admin, `/v1/objects?cursor=${text ?? changed}`);
    expect([status, (JSON.parse(body) as { code: string }).code]).toEqual([400, 'request.invalid']);
  });
});

describe('an API key', () => {
  it('reads at once what its owner has lost no longer, be it narrowed or not', async () => {
    const bob = await world.logIn(BOB);
    await world.grant(`user:${BOB}`, 'photos/a/', 'videos');
    const [whole, narrowed] = [await world.keyOf(bob), await world.keyOf(bob, ['photos/a/1', 'videos/b/'])];
    expect(await reads(whole)).toEqual(['photos/a/', 'videos']);
    expect(await reads(narrowed)).toEqual(['photos/a/1', 'videos/b/']);
    await world.revoke(`user:${BOB}`, 'videos');
    expect([await reads(whole), await reads(narrowed)]).toEqual([['photos/a/'], ['photos/a/1']]);
    await world.grant(`user:${BOB}`, 'videos/b/1');
    expect(await reads(narrowed)).toEqual(['photos/a/1', 'videos/b/1']);
    await world.revoke(`user:${BOB}`, 'photos/a/');
    await world.revoke(`user:${BOB}`, 'videos/b/1');
    expect([await reads(whole), await reads(narrowed)]).toEqual([[], []]);
    expect(await adviceTo(narrowed)).toContain('narrowed');
  });

  it('is not narrowed to more than its owner reads, and such a refusal tells nothing about what exists', async () => {
    const bob = await world.logIn(BOB);
    await world.grant(`user:${BOB}`, 'photos/a/');
    for (const where of ['*', 'photos', 'photos/a', 'photos/b/', 'videos', 'never-there']) {
      const { status, text } = await world.send(bob, '/v1/api-keys', { name: 'ci', grants: ['photos/a/', where] });
      const { code, detail } = JSON.parse(text) as { code: string; detail: string };
      expect([status, code]).toEqual([403, 'authorization.denied']);
      expect(detail.replace(where, '…')).toBe('an API key never reads more than its owner, and you may not read all of …');
    }
  });

  it('of an administrator that is narrowed does what a reader does, and no more', async () => {
    const admin = await world.logIn(ADMIN);
    const narrowed = await world.keyOf(admin, ['photos/a/']);
    expect(await read(narrowed)).toEqual(['photos/a/1', 'photos/a/2']);
    for (const path of ['/v1/gaps', '/v1/jobs', '/v1/admin/audit', '/v1/admin/grants', '/v1/admin/users']) {
      expect((await world.send(narrowed, path)).status, path).toBe(403);
    }
    const { status } = await world.send(admin, '/v1/api-keys', { name: 'ci', grants: ['photos'], scopes: ['read', 'admin'] });
    expect(status).toBe(400);
  });

  it('has of the claims of its owner nothing once the last login is too long ago, and all of it after the next', async () => {
    await world.grant(`user:${BOB}`, 'photos/a/');
    await world.grant('everyone', 'videos/a/1');
    await world.grant('group:analysts', 'photos/b/');
    const bob = await world.logIn(BOB, { groups: ['analysts'] });
    const boss = await world.logIn('boss@example.com', { role: 'boss' });
    const [key, narrowed, ofBoss] = [await world.keyOf(bob), await world.keyOf(bob, ['photos/b/1']), await world.keyOf(boss)];
    const all = async () => [await reads(key), await reads(narrowed), await reads(ofBoss)];
    const claimed = [['photos/a/', 'photos/b/', 'videos/a/1'], ['photos/b/1'], ['*']];
    await world.clock.advance(CLAIMS_DAYS * DAY_MS - 1);
    expect(await all()).toEqual(claimed);
    await world.clock.advance(1);
    expect(await all()).toEqual([['photos/a/', 'videos/a/1'], [], ['videos/a/1']]);
    expect((await world.send(ofBoss, '/v1/gaps')).status).toBe(403);
    await world.logIn(BOB, { groups: ['analysts'] });
    await world.logIn('boss@example.com', { role: 'boss' });
    // what a process knows of a key in use
    await world.clock.advance(3_500);
    expect(await all()).toEqual(claimed);
    // the issuer states other groups
    await world.logIn(BOB, { groups: ['others'] });
    await world.clock.advance(3_500);
    expect([await reads(key), await reads(narrowed)]).toEqual([['photos/a/', 'videos/a/1'], []]);
  });
});

describe('groups', () => {
  it.each([
    ['more than are kept', { groups: Array.from({ length: 1_001 }, (_, at) => `group-${at}`) }, ['photos/a/'], 1_000],
    ['one with a name that is too long', { groups: ['g'.repeat(257), 'group-0'] }, ['photos/a/'], 1],
    ['a link in their place', { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph' } } }, [], 0],
  ])('of a login with %s are known to be left out', async (_, claims, granted, kept) => {
    await world.grant('group:group-0', 'photos/a/');
    const admin = await world.logIn(ADMIN);
    const bob = await world.logIn(BOB, claims);
    expect(await reads(bob)).toEqual(granted);
    if (granted.length === 0) expect(await adviceTo(bob)).toContain('left out');
    const { user } = jsonOf(await world.send(bob, '/v1/session')) as { readonly user: { readonly id: string } };
    const access = jsonOf(await world.send(admin, `/v1/admin/users/${user.id}/access`));
    expect(access).toMatchObject({ email: BOB, reads: granted, because: 'grants', groups_left_out: true });
    expect(access['groups']).toHaveLength(kept);
    await world.logIn(BOB, { groups: ['group-0'] });
    expect(jsonOf(await world.send(admin, `/v1/admin/users/${user.id}/access`))).toMatchObject({
      groups: ['group-0'],
      groups_left_out: false,
    });
  });
});
