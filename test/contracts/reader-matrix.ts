/**
 * The matrix of what is read: each operation that readers call, as each kind of caller, over random objects. An answer must be
 * that of a registry whose store holds nothing but what the caller may read; what is not granted must be answered as what was
 * never there.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rows, type contract, type OperationName } from '../../src/registry/contract/contract.ts';
import type { Bucket } from '../../src/registry/contract/bucket.ts';
import { usageBy } from '../../src/store/groups.rules.ts';
import type { BucketPart, Readable } from '../../src/store/readable.rules.ts';
import { statusForReaders } from '../../src/records/bucket-status.ts';
import { nameOf, type ObjectDocument } from '../../src/ordering/document.ts';
import { markSeenAt } from '../support/fakes/gap-records.ts';
import type { DirtyMark } from '../../src/records/dirty.ts';
import { RequestError } from '../../src/base/request-error.ts';
import type { Store } from '../../src/store/store.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import type { BrowserAnswer } from '../support/identity/browser.ts';
import { jsonOf } from '../support/identity/http-world.ts';
import { createKeyProcess } from '../support/identity/keys.ts';
import { ADMIN, startReadersWorld, type ReadersWorld } from '../support/identity/readers-world.ts';
import { localActor } from '../support/identity/actors.ts';
import type { OpenStore } from './world.ts';

type ReadRow = Extract<(typeof contract)[keyof typeof contract], { readonly scope: 'read' }>;
type ReadName = ReadRow['operation'] & OperationName;

const BUCKETS = ['bucket-1', 'bucket-2', 'bucket-3'] as const;
const NEVER = 'bucket-9';
const NEVER_KEY = 'never/there.txt';
const DAY_MS = 86_400_000;
const keys = ['a', 'a/1', 'a/2.gz', 'a/b/report.txt', 'ab', 'ab/report.txt', 'b/report.gz', '\u00fc d/+&=.txt', '\uffff/1', '\u{1f600}/1'];
const prefixes = ['a', 'a/', 'a/b/', 'ab', 'b/', 'b/rep', 'ab/report.txt', '\uffff', '\u{1f600}/', 'none/'];

interface Thing {
  readonly bucket: string;
  readonly key: string;
  readonly deleted: boolean;
  readonly size: number;
  readonly ageDays: number;
  readonly storageClass: string | undefined;
}

/** What a caller is: what it may read, which the grants and the key come to. */
interface Caller {
  readonly token: string | undefined;
  readonly readable: Readable;
  readonly isAdmin: boolean;
}

interface Drawn {
  readonly things: readonly Thing[];
  readonly ofPrefix: BucketPart;
  readonly ofBucket: string;
  readonly ofGroup: readonly BucketPart[];
}

const someBucket = fc.constantFrom(...BUCKETS);
const drawn: fc.Arbitrary<Drawn> = fc.record({
  things: fc.uniqueArray(
    fc.record({
      bucket: someBucket,
      key: fc.constantFrom(...keys),
      deleted: fc.boolean(),
      size: fc.nat(3),
      ageDays: fc.constantFrom(0, 3, 400),
      storageClass: fc.constantFrom('STANDARD', 'GLACIER', undefined),
    }),
    { minLength: 5, maxLength: 25, selector: ({ bucket, key }) => `${bucket}/${key}` },
  ),
  ofPrefix: fc.record({ bucket: someBucket, prefix: fc.constantFrom(...prefixes) }),
  ofBucket: someBucket,
  ofGroup: fc.array(fc.record({ bucket: someBucket, prefix: fc.constantFrom(...prefixes, '') }), { minLength: 1, maxLength: 4 }),
});

const gapPrefixes: readonly (readonly [string, string | undefined])[] = [
  ['bucket-1', 'a/'],
  ['bucket-1', 'b/'],
  ['bucket-2', undefined],
  ['bucket-3', 'a/b/'],
];

const isIn = (readable: Readable, { bucket, key }: { readonly bucket: string; readonly key: string }): boolean =>
  readable === 'everything' || readable.some((part) => part.bucket === bucket && key.startsWith(part.prefix));
const isSome = (readable: Readable, bucket: string): boolean =>
  readable === 'everything' || readable.some((part) => part.bucket === bucket);
const isWhole = (readable: Readable, bucket: string): boolean =>
  readable === 'everything' || readable.some((part) => part.bucket === bucket && part.prefix === '');
const touchesGap = (readable: Readable, { bucket, prefix = '' }: Pick<DirtyMark, 'bucket' | 'prefix'>): boolean =>
  readable === 'everything' ||
  readable.some((part) => part.bucket === bucket && (part.prefix.startsWith(prefix) || prefix.startsWith(part.prefix)));

/** Fills a store with what of the things this readable has: all of them for the registry, fewer for the model of a caller. */
async function fill(
  store: Pick<Store, 'objects' | 'state'>,
  things: readonly Thing[],
  { readable, nowMs }: { readonly readable: Readable; readonly nowMs: number },
) {
  const iso = (ms: number): string => new Date(ms).toISOString();
  for (const bucket of BUCKETS.filter((name) => isSome(readable, name))) {
    await store.objects.createBucket(bucket);
    const times = isWhole(readable, bucket)
      ? { lastEventAtMs: nowMs - 1_000, lastComparedAtMs: nowMs - 2_000 }
      : { lastComparedAtMs: nowMs - 2_000 };
    await updateRecord(store.state, refs.bucket(bucket), () => recordOf(bucket, { ...times, provenAtMs: nowMs, createdAtMs: nowMs }));
  }
  for (const [at, [bucket, prefix]] of gapPrefixes.entries()) {
    if (!touchesGap(readable, { bucket, ...(prefix !== undefined && { prefix }) })) continue;
    const id = `gap:${bucket}:${at}`;
    const reasons: DirtyMark['reasons'] = [{ kind: 'loss', count: 1, lastMs: nowMs, example: `reason ${at}` }];
    const more = { id, bucket, reasons, ...(prefix !== undefined && { prefix }) };
    await updateRecord(store.state, refs.gap(id), () => markSeenAt(nowMs - at, more));
  }
  const documents = things
    .filter((thing) => isIn(readable, thing))
    .map(({ bucket, key, deleted, size, ageDays, storageClass }): ObjectDocument => {
      const fields = { bucket, key, deleted, clock: 1_000, settled: true, source: 'check', indexed_at: iso(nowMs - size) } as const;
      if (deleted) return { ...fields, deleted_at: iso(nowMs - ageDays) };
      const last = iso(nowMs - ageDays * DAY_MS);
      return { ...fields, ...nameOf(key), size, last_modified: last, ...(storageClass !== undefined && { storage_class: storageClass }) };
    });
  // the feed may leave out the deletion of what was never held
  const held = documents.filter(({ deleted }) => deleted).map((document) => ({ ...document, deleted: false, clock: 1 }));
  for (const written of [held, documents]) await store.objects.write(written.map((document) => ({ document, equalClock: 'accept' })));
}

const query = (fields: Readonly<Record<string, string>>): string => new URLSearchParams(fields).toString();

/** The paths that are asked about a bucket, or about all. */
type Asks = (bucket: string) => readonly string[];

/** Each operation that readers call. */
const table: Readonly<Record<ReadName, Asks>> = {
  searchObjects: (bucket) => [
    ...[{}, { bucket }, { prefix: 'a' }, { q: 'report' }, { bucket, q: 'report', prefix: 'a' }, { extension: 'gz' }, { size_min: '2' }].map(
      (fields) => `/v1/objects?${query({ ...fields, total: 'true', as_of: 'true' })}`,
    ),
    ...['size', 'last_modified', 'key'].map((sort) => `/v1/objects?${query({ sort, order: 'desc', total: 'true' })}`),
    `/v1/objects?${query({ deleted: 'true', total: 'true' })}`,
    `/v1/objects?${query({ deleted: 'true', sort: 'deleted_at', order: 'desc', bucket })}`,
    `/v1/objects?${query({ query: `bucket:${bucket} report,ab`, total: 'true', as_of: 'true' })}`,
    `/v1/objects?${query({ query: `-bucket:${bucket} size<3` })}`,
    `/v1/objects?${query({ key: 'a/1' })}`,
  ],
  getUsage: (bucket) => [
    ...usageBy.flatMap((by) => ['', 'a'].map((prefix) => `/v1/usage?${query({ bucket, by, prefix })}`)),
    ...[{}, { prefix: 'a' }, { q: 'report' }, { query: `-bucket:${bucket} size<3` }].map(
      (fields) => `/v1/usage?${query({ ...fields, by: 'bucket' })}`,
    ),
  ],
  listChanges: (bucket) => ['', 'a', 'b/'].map((prefix) => `/v1/changes?${query({ bucket, prefix, limit: '1000' })}`),
  listBuckets: () => ['/v1/buckets'],
  getBucket: (bucket) => [`/v1/buckets/${bucket}`],
  explainObject: (bucket) => [...keys, NEVER_KEY].map((key) => `/v1/buckets/${bucket}/explain?${query({ key })}`),
  getSession: () => ['/v1/session'],
  sendMcpMessage: () => ['/mcp'],
};
const readNames = Object.keys(table) as readonly ReadName[];

const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search_objects', arguments: { limit: 100 } } };
const PAGED = /^\/v1\/(?:objects|buckets)(?:\?|$)/;

interface Answered {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

const answered = (answer: BrowserAnswer): Answered => ({ status: answer.status, body: jsonOf(answer) });

interface Keyed {
  readonly key: string;
}

/** A page of the feed without its position, in the order of its keys: each index has an order of its own. */
function withoutPlace(page: { readonly cursor: string; readonly items: readonly Keyed[] }): Answered['body'] {
  const { cursor: _, items, ...rest } = page;
  return { ...rest, items: items.toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
}

/** All pages of a list as one answer; of anything else, the answer. */
async function askedWhole(
  { send }: ReadersWorld,
  { token, readable }: Pick<Caller, 'token' | 'readable'>,
  path: string,
): Promise<Answered> {
  if (path === '/mcp') return answered(await send(token, path, MESSAGE));
  if (path.startsWith('/v1/changes')) {
    const { status, body } = answered(await send(token, path));
    return { status, body: status === 200 ? withoutPlace(body as { readonly cursor: string; readonly items: readonly Keyed[] }) : body };
  }
  if (!PAGED.test(path)) return answered(await send(token, path));
  const items: unknown[] = [];
  for (let cursor = ''; ;) {
    const { status, body } = answered(await send(token, `${path}${path.includes('?') ? '&' : '?'}limit=4${cursor}`));
    if (status !== 200) return { status, body };
    const { next, items: page, ...rest } = body as { readonly next?: string; readonly items: readonly unknown[] };
    items.push(...page);
    if (next === undefined) return { status, body: { ...rest, items } };
    // a cursor is a position, and names nothing that is not granted
    const position = Buffer.from(next, 'base64url').toString();
    for (const bucket of BUCKETS) if (!isSome(readable, bucket) && !path.includes(bucket)) expect(position, path).not.toContain(bucket);
    cursor = `&cursor=${next}`;
  }
}

/** What this caller sees of a bucket: what a person does about its status is for administrators, and its words are for those who read everything. */
function seenBy({ readable, isAdmin }: Caller, view: Readonly<Record<string, unknown>>): object {
  if (isAdmin) return view;
  const { act: _, ...known } = view['status'] as Bucket['status'];
  const { state, severity } = known;
  const status =
    readable === 'everything'
      ? known
      : { state, severity, sentence: statusForReaders({ state, severity, sentence: '', gaps: 0 }).sentence };
  const names = isWhole(readable, String(view['bucket'])) ? ['last_event_at', 'last_compared_at', 'behind_ms'] : [];
  const shown = new Set(['bucket', 'gaps', ...names]);
  return { ...Object.fromEntries(Object.entries(view).filter(([name]) => shown.has(name))), status };
}

type Model = ReturnType<typeof createKeyProcess>;

/** What the model answers, which holds nothing but what the caller reads, to one who reads everything. */
async function modelled(model: Model, caller: Caller, path: string): Promise<unknown> {
  const { pathname, searchParams } = new URL(path, 'http://model');
  const { bucket = '', ...fields } = Object.fromEntries(searchParams);
  const context = model.contextOf(localActor);
  const asked = { ...fields, ...(fields['size_min'] !== undefined && { size_min: Number(fields['size_min']) }), limit: 1_000 };
  switch (pathname) {
    case '/v1/objects': {
      const { as_of: asOf, ...found } = await model.operations.searchObjects(
        { query: { ...asked, ...(bucket !== '' && { bucket }) } },
        context,
      );
      return { ...found, ...(asOf && { as_of: asOf.map((each) => seenBy(caller, each)) }) };
    }
    case '/v1/usage':
      return model.operations.getUsage({ query: { ...asked, ...(bucket !== '' && { bucket }) } }, context);
    case '/v1/changes':
      return withoutPlace(await model.operations.listChanges({ query: { ...asked, bucket } }, context));
    case '/v1/buckets': {
      const { items, unconnected, activity } = await model.operations.listBuckets({ query: asked }, context);
      return { items: items.map((each) => seenBy(caller, each)), unconnected, ...(caller.isAdmin && { activity }) };
    }
    default: {
      const [, named] = /^\/v1\/buckets\/([^/]+)$/.exec(pathname) ?? [];
      if (named === undefined) throw new Error(`say here what the model answers to ${pathname}`);
      return seenBy(caller, await model.operations.getBucket({ params: { bucket: named } }, context));
    }
  }
}

/** People who have logged in, with their grants and keys, by what they are. */
async function callersIn(world: ReadersWorld, { ofPrefix, ofBucket, ofGroup }: Drawn): Promise<ReadonlyMap<string, Caller>> {
  const text = ({ bucket, prefix }: BucketPart): string => `${bucket}/${prefix}`;
  await world.grant('user:prefix@example.com', text(ofPrefix));
  await world.grant('user:bucket@example.com', ofBucket);
  await world.grant('user:all@example.com', '*');
  await world.grant('user:unverified@example.com', '*');
  await world.grant('group:analysts', ...ofGroup.map(text));
  const person = async (name: string, readable: Readable, claims: object = {}) => {
    const isAdmin = name === ADMIN;
    return { token: await world.logIn(isAdmin ? name : `${name}@example.com`, { ...claims }), readable, isAdmin };
  };
  const people = {
    'a reader of nothing': await person('nobody', []),
    'an unverified address with a grant': await person('unverified', [], { email_verified: undefined }),
    'a reader of a prefix': await person('prefix', [ofPrefix]),
    'a reader of a bucket': await person('bucket', [{ bucket: ofBucket, prefix: '' }]),
    'a reader of everything': await person('all', 'everything'),
    'a reader by group': await person('member', ofGroup, { groups: ['other', 'analysts'] }),
    'an administrator': await person(ADMIN, 'everything'),
  } as const;
  const keyed = async ({ token, ...owner }: Caller): Promise<Caller> => ({ ...owner, token: await world.keyOf(token ?? '') });
  const callers = new Map<string, Caller>([['nobody who is known', { token: undefined, readable: [], isAdmin: false }]]);
  for (const [name, each] of Object.entries(people)) {
    callers.set(name, each);
    callers.set(`a key of ${name}`, await keyed(each));
  }
  return callers;
}

/** Compares what a caller is answered with the model. */
async function check(world: ReadersWorld, caller: Caller, { things, at }: { readonly things: readonly Thing[]; readonly at: number }) {
  const { token, readable } = caller;
  const model = createKeyProcess({ store: createMemoryStore(), clock: world.clock });
  await fill(model.store, things, { readable, nowMs: world.clock.nowMs() });
  const never = (text: string, bucket: string): unknown => JSON.parse(text.replaceAll(NEVER, bucket));

  /** Answers exactly as for a bucket that was never connected. */
  async function expectUnknown(path: string, bucket: string): Promise<void> {
    const ofNever = await world.send(token, path.replaceAll(bucket, NEVER));
    const found = await world.send(token, path);
    expect([ofNever.status, jsonOf(ofNever)['code']], path).toEqual([404, 'bucket.not-connected']);
    expect([found.status, jsonOf(found)], path).toEqual([ofNever.status, never(ofNever.text, bucket)]);
    expect(Object.keys(found.headers), path).toEqual(Object.keys(ofNever.headers));
  }

  async function expectExplained(path: string, bucket: string): Promise<void> {
    const key = new URL(path, 'http://model').searchParams.get('key') ?? '';
    const seen = world.storage.observed.length;
    const { status, body } = answered(await world.send(token, path));
    const stored = things.find((thing) => thing.bucket === bucket && thing.key === key);
    if (readable === 'everything' || (stored !== undefined && isIn(readable, { bucket, key }))) {
      expect(status, path).toBe(200);
      expect(body, path).toMatchObject({ bucket, key, ...(stored && { index: { bucket, key, deleted: stored.deleted } }) });
      const { bucket_status: of } = body as { readonly bucket_status: object };
      const view = { ...(await model.operations.getBucket({ params: { bucket } }, model.contextOf(localActor))) };
      expect(of, path).toEqual((seenBy(caller, view) as { readonly status: object }).status);
      return;
    }
    expect([status, body['code']], path).toEqual([404, 'object.not-found']);
    if (isIn(readable, { bucket, key })) return;
    // before anything was asked of S3
    expect(world.storage.observed.length, path).toBe(seen);
    const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);
    const ofNever = await world.send(token, `/v1/buckets/${bucket}/explain?${query({ key: NEVER_KEY })}`);
    expect(body, path).toEqual(JSON.parse(ofNever.text.replaceAll(escaped(NEVER_KEY), escaped(key))));
  }

  async function expectOwn(name: ReadName, { status, body }: Answered): Promise<void> {
    expect(status, name).toBe(200);
    if (name === 'sendMcpMessage') {
      const { result } = body as { readonly result: { readonly structuredContent: { readonly items: readonly Thing[] } } };
      const live = things.filter((thing) => !thing.deleted && isIn(readable, thing));
      const placed = (list: readonly { readonly bucket: string; readonly key: string }[]) =>
        list.map(({ bucket, key }) => `${bucket}/${key}`).toSorted();
      expect(placed(result.structuredContent.items)).toEqual(placed(live));
    }
    if (name === 'getSession') {
      const { reads, advice } = body as { readonly reads: readonly string[]; readonly advice?: string };
      const all = BUCKETS.flatMap((bucket) => [...keys, ...prefixes].map((key) => ({ bucket, key })));
      const isRead = ({ bucket, key }: { bucket: string; key: string }) =>
        reads.some((text) => text === '*' || text === bucket || (text.startsWith(`${bucket}/`) && `${bucket}/${key}`.startsWith(text)));
      expect(all.filter(isRead)).toEqual(all.filter((each) => isIn(readable, each)));
      expect(advice === undefined).toBe(reads.length > 0);
    }
  }

  /** No name of a bucket of which nothing is granted, and no key that is not granted, is in an answer that the caller did not ask by. */
  function expectNoName(path: string, text: string): void {
    for (const bucket of BUCKETS) if (!isSome(readable, bucket) && !path.includes(bucket)) expect(text, path).not.toContain(bucket);
  }

  for (const name of readNames) {
    for (const bucket of name === 'searchObjects' || name === 'getUsage' ? [BUCKETS[at % 3] ?? ''] : BUCKETS) {
      for (const path of table[name](bucket)) {
        const isOfBucket = path.includes(bucket);
        if (isOfBucket && !path.includes('-bucket') && !isSome(readable, bucket)) {
          await expectUnknown(path, bucket);
          continue;
        }
        if (name === 'explainObject') {
          await expectExplained(path, bucket);
          continue;
        }
        const found = await askedWhole(world, caller, path);
        expectNoName(path, JSON.stringify(found.body));
        if (name === 'getSession' || name === 'sendMcpMessage') await expectOwn(name, found);
        else {
          const wanted = await modelled(model, caller, path).catch((error: unknown) => {
            if (!(error instanceof RequestError)) throw error;
            return { code: error.code };
          });
          expect(found.body, path).toEqual(
            'code' in (wanted as object) ? expect.objectContaining(wanted as object) : JSON.parse(JSON.stringify(wanted)),
          );
        }
      }
    }
  }
}

/** Declares the matrix for one store. */
export function readerMatrix(name: string, open: () => Promise<OpenStore>, numRuns: number): void {
  describe(`what readers are answered from ${name}`, () => {
    it('is asked of each operation that readers call', () => {
      const called = rows.filter(({ scope }) => scope === 'read').map(({ operation }) => operation);
      expect(readNames.toSorted()).toEqual(called.toSorted());
    });

    it('is what they may read, for each operation and each kind of caller, and nothing else exists', async () => {
      await fc.assert(
        fc.asyncProperty(drawn, async (all) => {
          const opened = await open();
          await opened.store.setup.prepare();
          const world = await startReadersWorld(opened.store);
          try {
            await fill(opened.store, all.things, { readable: 'everything', nowMs: world.clock.nowMs() });
            for (const bucket of BUCKETS) world.storage.createBucket(bucket);
            for (const { bucket, key, deleted } of all.things) if (!deleted) world.storage.put(bucket, key);
            const callers = await callersIn(world, all);
            await opened.refresh?.();
            for (const [at, [caller, of]] of [...callers].entries()) {
              if (of.token === undefined) await checkStranger(world);
              else
                await check(world, of, { things: all.things, at }).catch((error: unknown) => {
                  throw new Error(`as ${caller}, who reads ${JSON.stringify(of.readable)}`, { cause: error });
                });
            }
          } finally {
            await world.close();
            await opened.dispose();
          }
        }),
        { numRuns, endOnFailure: true },
      );
    });
  });
}

/** Without a credential everything is answered alike. */
async function checkStranger(world: ReadersWorld): Promise<void> {
  for (const name of readNames) {
    for (const path of [BUCKETS[0], NEVER].flatMap((bucket) => table[name](bucket))) {
      const { status, body } = await askedWhole(world, { token: undefined, readable: [] }, path);
      expect([status, body['code']], path).toEqual([401, 'authentication.failed']);
      expect(JSON.stringify(body), path).not.toContain('bucket-');
    }
  }
}
