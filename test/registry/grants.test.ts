/** When grants count and when they end, over HTTP: at the next request, whatever the caller holds already. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor } from '../../src/base/cursor.ts';
import { PARTS_MAX } from '../../src/store/readable.rules.ts';
import { nameOf } from '../../src/ordering/document.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { jsonOf } from '../support/identity/http-world.ts';
import { createKeyProcess, DAY_MS } from '../support/identity/keys.ts';
import { ADMIN, CLAIMS_DAYS, startReadersWorld, type ReadersWorld } from '../support/identity/readers-world.ts';
import { refs as identityRefs } from '../../src/identity/refs.ts';

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
const reads = async (token: string): Promise<unknown> => jsonOf(await world.send(token, '/v1/session'))['reads'];
const adviceTo = async (token: string): Promise<unknown> => jsonOf(await world.send(token, '/v1/session'))['advice'];

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

  it('of too many parts gives none, says so to the person, and names the person to those who read the log', async () => {
    const bob = await world.logIn(BOB);
    const parts = Array.from({ length: PARTS_MAX + 1 }, (_, at) => `photos/${at}/`);
    await world.grant(`user:${BOB}`, ...parts.slice(1));
    expect(await reads(bob)).toHaveLength(PARTS_MAX);
    expect(await adviceTo(bob)).toBeUndefined();
    await world.grant(`user:${BOB}`, parts[0] ?? '');
    expect(await reads(bob)).toEqual([]);
    expect(await adviceTo(bob)).toContain('ask an administrator');
    const warned = JSON.stringify(world.process.telemetry.facts);
    expect(warned).toContain('too many separate parts');
    expect(warned).toContain(BOB);
    await world.grant(`user:${BOB}`, 'photos');
    expect(await reads(bob)).toEqual(['photos']);
  });
});

describe('a cursor', () => {
  it('is a position, to which other filters do not matter: each page is a page of what is asked now', async () => {
    const bob = await world.logIn(BOB);
    await world.grant(`user:${BOB}`, 'photos/a/', 'videos/b/');
    const { next } = await found(bob, 'limit=1');
    expect(places(await found(bob, `prefix=b/&cursor=${next}`))).toEqual(['videos/b/1', 'videos/b/2']);
    expect(places(await found(bob, `bucket=photos&cursor=${next}`))).toEqual(['photos/a/2']);
  });

  it('that was made up shows nothing that is not granted', async () => {
    const [bob, carl] = [await world.logIn(BOB), await world.logIn('carl@example.com')];
    await world.grant(`user:${BOB}`, 'photos/b/1');
    const { next = '' } = await found(await world.logIn(ADMIN), 'limit=1');
    const [by = '', order = '', value = '', , , nowMs = ''] = decodeCursor(next, 6);
    const at = (bucket: string, key: string): string => encodeCursor([by, order, value, bucket, key, nowMs]);
    for (const cursor of [at('photos', 'a/1'), at('photos', '!'), at('aaa', '\u0000')]) {
      expect(places(await found(bob, `cursor=${cursor}`))).toEqual(['photos/b/1']);
      expect(await found(carl, `cursor=${cursor}`)).toEqual({ items: [] });
    }
    expect(await found(bob, `cursor=${at('photos', 'b/1')}`)).toEqual({ items: [] });
  });

  it('of the longest key continues behind it', async () => {
    const admin = await world.logIn(ADMIN);
    for (const order of ['', 'sort=size&', 'sort=last_modified&order=desc&']) {
      const first = await found(admin, `${order}limit=1`);
      expect(places(first)).toEqual([`photos/${LONGEST}`]);
      expect(places(await found(admin, `${order}limit=1&cursor=${first.next}`))).toHaveLength(1);
    }
  });
});

describe('an API key', () => {
  it('reads at once what its owner has lost no longer', async () => {
    const bob = await world.logIn(BOB);
    await world.grant(`user:${BOB}`, 'photos/a/', 'videos');
    const key = await world.keyOf(bob);
    expect(await reads(key)).toEqual(['photos/a/', 'videos']);
    await world.revoke(`user:${BOB}`, 'videos');
    expect(await reads(key)).toEqual(['photos/a/']);
    await world.revoke(`user:${BOB}`, 'photos/a/');
    expect(await reads(key)).toEqual([]);
    expect(await adviceTo(key)).toContain('No grant applies to you');
  });

  it('whose stored record has a field that is not known, such as one that narrows it, is refused and reads nothing', async () => {
    const bob = await world.logIn(BOB);
    await world.grant(`user:${BOB}`, 'photos', 'videos');
    const { key, secret } = jsonOf(await world.send(bob, '/v1/api-keys', { name: 'ci' })) as {
      readonly key: { readonly id: string };
      readonly secret: string;
    };
    expect(await reads(secret)).toEqual(['photos', 'videos']);
    const { state } = world.store;
    const stored = await state.get(identityRefs.apiKey(key.id).id);
    await state.put(
      { id: identityRefs.apiKey(key.id).id, kind: 'api-key', record: { ...(stored?.record as object), grants: ['photos/a/'] } },
      stored?.version ?? null,
    );
    await world.clock.advance(3_500);
    for (const path of ['/v1/objects', '/v1/buckets', '/v1/session']) {
      const { status, text } = await world.send(secret, path);
      expect([path, status, (JSON.parse(text) as { code: string }).code]).toEqual([path, 503, 'record.newer']);
    }
  });

  it('has of the claims of its owner nothing once the last login is too long ago, and all of it after the next', async () => {
    await world.grant(`user:${BOB}`, 'photos/a/');
    await world.grant('everyone', 'videos/a/1');
    await world.grant('group:analysts', 'photos/b/');
    const bob = await world.logIn(BOB, { groups: ['analysts'] });
    const boss = await world.logIn('boss@example.com', { role: 'boss' });
    const [key, ofBoss] = [await world.keyOf(bob), await world.keyOf(boss)];
    const all = async () => [await reads(key), await reads(ofBoss)];
    const claimed = [['photos/a/', 'photos/b/', 'videos/a/1'], ['*']];
    await world.clock.advance(CLAIMS_DAYS * DAY_MS - 1);
    expect(await all()).toEqual(claimed);
    await world.clock.advance(1);
    expect(await all()).toEqual([['photos/a/', 'videos/a/1'], ['videos/a/1']]);
    expect((await world.send(ofBoss, '/v1/gaps')).status).toBe(403);
    await world.logIn(BOB, { groups: ['analysts'] });
    await world.logIn('boss@example.com', { role: 'boss' });
    // what a process knows of a key in use
    await world.clock.advance(3_500);
    expect(await all()).toEqual(claimed);
    // the issuer states other groups
    await world.logIn(BOB, { groups: ['others'] });
    await world.clock.advance(3_500);
    expect(await reads(key)).toEqual(['photos/a/', 'videos/a/1']);
  });
});

it('groups of a login with a link in their place are known to be left out', async () => {
  await world.grant('group:group-0', 'photos/a/');
  const admin = await world.logIn(ADMIN);
  const bob = await world.logIn(BOB, { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://graph' } } });
  expect(await reads(bob)).toEqual([]);
  expect(await adviceTo(bob)).toContain('tally admin access --user');
  const { user } = jsonOf(await world.send(bob, '/v1/session')) as { readonly user: { readonly id: string } };
  const access = async () => jsonOf(await world.send(admin, `/v1/admin/users/${user.id}/access`));
  expect(await access()).toMatchObject({ email: BOB, reads: [], because: 'grants', groups: [], groups_left_out: true });
  await world.logIn(BOB, { groups: ['group-0'] });
  expect(await access()).toMatchObject({ reads: ['photos/a/'], groups: ['group-0'], groups_left_out: false });
});
