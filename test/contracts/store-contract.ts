/** The contract of the ports that both stores must pass: one behaviour, whatever is behind it. */
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import { queryWordsOf } from '../../src/base/words.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectQuery, StateEntry, Store } from '../../src/store/store.ts';
import type { StateKind } from '../../src/records/state-kind.ts';
import { awkwardKeys, codeOf, contractWorld, keysOf, live as liveOf, tombstone as tombstoneOf, unique, type OpenStore } from './world.ts';

const live = (bucket: string, key: string, clock = 1_000, more: Partial<ObjectDocument> = {}): ObjectDocument =>
  liveOf(bucket, key, { clock, ...more });
const tombstone = (bucket: string, key: string, clock = 1_000): ObjectDocument => tombstoneOf(bucket, key, { clock });

const accept = (document: ObjectDocument): IndexWrite => ({ document, equalClock: 'accept' });
const refuse = (document: ObjectDocument): IndexWrite => ({ document, equalClock: 'refuse' });
const kinds = (answers: readonly IndexWriteAnswer[]): string[] => answers.map((answer) => answer.kind);
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

function wordsQuery(q: string): Pick<ObjectQuery, 'words'> {
  const words = queryWordsOf(q);
  if (words === null) throw new Error(`no word in ${q}`);
  return { words };
}

/** Declares the contract's tests for one store. */
export function storeContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`${name} keeps the store's contract`, () => {
    const world = contractWorld(open);
    const { newBucket, write } = world;
    let store: Store;
    beforeAll(() => {
      ({ store } = world);
    });

    async function stored(bucket: string, key: string): Promise<ObjectDocument | undefined> {
      return (await store.objects.getMany(bucket, [key]))[0];
    }

    /** Polls, since a search may be one refresh behind. */
    async function eventually(check: () => Promise<void>): Promise<void> {
      await world.refresh();
      await vi.waitFor(check, { timeout: 100_000, interval: 100 });
    }

    async function expectFound(query: Omit<ObjectQuery, 'limit'>, keys: readonly string[]): Promise<void> {
      await eventually(async () => {
        const found = await store.objects.search({ limit: 1_000, ...query });
        expect(keysOf(found)).toEqual(keys);
      });
    }

    it('tells the index of each bucket from one that was made in its place', async () => {
      const [kept, remade] = [await newBucket(), await newBucket()];
      const before = await store.objects.identities([kept, remade, unique('none')]);
      expect(before).toEqual([expect.any(String), expect.any(String), undefined]);
      await store.objects.createBucket(kept);
      await store.objects.removeBucket(remade);
      expect(await store.objects.identities([remade])).toEqual([undefined]);
      await store.objects.createBucket(remade);
      const after = await store.objects.identities([kept, remade]);
      expect(after[0]).toBe(before[0]);
      expect(after[1]).not.toBe(before[1]);
      expect(await store.objects.identities([remade])).toEqual([after[1]]);
    });

    describe('setup', () => {
      it('answers index.state-missing before it was ever prepared', async () => {
        const other = await open();
        expect(await codeOf(other.store.state.get('bucket:any'))).toBe('index.state-missing');
        await other.dispose();
      });

      it('can be prepared again, and by several at once, without losing anything', async () => {
        const bucket = await newBucket();
        await write([live(bucket, 'kept')]);
        await store.state.put({ id: 'lock:prepare', kind: 'lock', record: { kept: true } }, null);
        await Promise.all([store.setup.prepare(), store.setup.prepare(), store.setup.prepare()]);
        expect(await stored(bucket, 'kept')).toEqual(live(bucket, 'kept'));
        expect((await store.state.get('lock:prepare'))?.record).toEqual({ kept: true });
      });

      it('says of itself what it is, and probes without a fault', async () => {
        expect(['opensearch', 'sqlite']).toContain(store.product);
        await store.objects.probe();
      });

      it('proves that documents of a bucket can be written, and leaves nothing behind', async () => {
        await expect(store.objects.probeBucket('never-created')).rejects.toMatchObject({ code: 'bucket.index-missing' });
        const bucket = await newBucket();
        for (let attempt = 0; attempt < 3; attempt += 1) await store.objects.probeBucket(bucket);
        await store.scan.refresh(bucket);
        expect(await store.scan.scan(bucket, { prefix: '', after: '', limit: 10 })).toEqual([]);
        expect(
          await store.maintenance.purge(bucket, {
            deletedBeforeMs: 4_000_000_000_000,
            upTo: await store.objects.position(bucket),
            limit: 10,
          }),
        ).toBe(0);
        expect(await store.maintenance.unsettled(bucket, { clockBelow: 2 ** 53 - 1, after: '', limit: 10 })).toEqual([]);
        expect(await store.objects.write([accept(live(bucket, 'a', 1))])).toEqual([{ kind: 'written' }]);
      });

      it('rejects with the reason of a signal that was aborted before', async () => {
        const reason = new Error('stopping');
        const signal = AbortSignal.abort(reason);
        const bucket = await newBucket();
        await expect(store.objects.write([accept(live(bucket, 'a'))], signal)).rejects.toBe(reason);
        await expect(store.objects.getMany(bucket, ['a'], signal)).rejects.toBe(reason);
        await expect(store.objects.search({ bucket, limit: 1 }, signal)).rejects.toBe(reason);
        await expect(store.objects.createBucket(bucket, signal)).rejects.toBe(reason);
        await expect(store.objects.removeBucket(bucket, signal)).rejects.toBe(reason);
        await expect(store.objects.probe(signal)).rejects.toBe(reason);
        await expect(store.objects.probeBucket(bucket, signal)).rejects.toBe(reason);
        await expect(store.setup.prepare(signal)).rejects.toBe(reason);
        await expect(store.state.get('bucket:a', signal)).rejects.toBe(reason);
        await expect(store.state.put({ id: 'bucket:a', kind: 'bucket', record: {} }, null, signal)).rejects.toBe(reason);
        await expect(store.state.remove('bucket:a', 'v', signal)).rejects.toBe(reason);
        await expect(store.state.list('bucket', { limit: 1 }, signal)).rejects.toBe(reason);
        await expect(store.state.count('bucket', signal)).rejects.toBe(reason);
        expect(await stored(bucket, 'a')).toBeUndefined();
        expect(await store.state.get('bucket:a')).toBeUndefined();
      });
    });

    describe('writes', () => {
      it('holds clocks of microseconds exactly', async () => {
        const bucket = await newBucket();
        const clock = 1_790_000_000_123_457;
        await write([live(bucket, 'k', clock)]);
        expect(kinds(await store.objects.write([accept(live(bucket, 'k', clock - 1))]))).toEqual(['superseded']);
        expect(kinds(await store.objects.write([refuse(live(bucket, 'k', clock))]))).toEqual(['equal']);
        expect(kinds(await store.objects.write([refuse(live(bucket, 'k', clock + 1))]))).toEqual(['written']);
        expect((await stored(bucket, 'k'))?.clock).toBe(clock + 1);
      });

      it('applies several writes of one key in one request in their order', async () => {
        const bucket = await newBucket();
        expect(await store.objects.write([])).toEqual([]);
        const answers = await store.objects.write([
          accept(live(bucket, 'k', 5, { etag: 'first' })),
          accept(live(bucket, 'other', 1)),
          refuse(live(bucket, 'k', 5, { etag: 'second' })),
          accept(live(bucket, 'k', 4, { etag: 'third' })),
          accept(live(bucket, 'k', 5, { etag: 'fourth' })),
          accept(tombstone(bucket, 'k', 6)),
          accept(live(bucket, 'k', 7, { etag: 'last' })),
        ]);
        expect(kinds(answers)).toEqual(['written', 'written', 'equal', 'superseded', 'written', 'written', 'written']);
        expect(await stored(bucket, 'k')).toEqual(live(bucket, 'k', 7, { etag: 'last' }));
      });

      it('replaces the whole document: a field that the newer one lacks is gone', async () => {
        const bucket = await newBucket();
        await write([live(bucket, 'k', 1, { etag: 'e', size: 3, version_id: 'v' }), live(bucket, 'k', 2)]);
        expect(await stored(bucket, 'k')).toEqual(live(bucket, 'k', 2));
      });

      it('takes a request of a thousand writes over several buckets, answered in order, and answers a thousand keys', async () => {
        const [first, second] = [await newBucket(), await newBucket()];
        const many = Array.from({ length: 1_000 }, (_, number) => live(number % 2 === 0 ? first : second, `k${number}`, number + 1));
        await write(many);
        const again = await store.objects.write(many.map((document, at) => ({ document, equalClock: at % 3 === 0 ? 'accept' : 'refuse' })));
        expect(kinds(again)).toEqual(many.map((_, at) => (at % 3 === 0 ? 'written' : 'equal')));
        expect(await store.objects.getMany(first, keysOf(many))).toEqual(many.map((document, at) => (at % 2 === 0 ? document : undefined)));
      });
    });

    describe('documents', () => {
      const whole: Omit<ObjectDocument, 'bucket' | 'key'> = {
        name: 'b.tar.gz',
        extension: 'gz',
        size: 5 * 2 ** 40 + 1,
        etag: 'd41d8cd98f00b204e9800998ecf8427e-12',
        version_id: '3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY+MTRCxf3vjVBH40Nr8X8gdRQBpUMLUo',
        last_modified: '2026-01-02T03:04:05.000Z',
        last_modified_exact: false,
        storage_class: 'INTELLIGENT_TIERING',
        content_type: 'text/plain; charset=utf-8',
        user_metadata: { author: 'J\u00fcrgen', 'cost.center': '42', note: '' },
        tags: { 'Gr\u00f6\u00dfe': '\u{1f600}', 'project/name': 'a b' },
        expires_at: '2027-01-01T00:00:00.000Z',
        deleted: false,
        clock: 1_790_000_000_000_001,
        settled: false,
        source: 'eventbridge',
        event_name: 'ObjectCreated:Put',
        event_time: '2026-01-02T03:04:05.678Z',
        indexed_at: '2026-01-02T03:04:06.001Z',
      };

      it('come back with every field as written, by id and by search, and without those that they lacked', async () => {
        const bucket = await newBucket();
        const document: ObjectDocument = { ...whole, bucket, key: 'a/b.tar.gz' };
        const [empty, gone] = [live(bucket, 'b', 1, { size: 0, etag: '' }), tombstone(bucket, 'c', 2)];
        await write([document, empty, gone]);
        expect(await store.objects.getMany(bucket, [document.key, 'b', 'c'])).toStrictEqual([document, empty, gone]);
        await eventually(async () => {
          expect(await store.objects.search({ bucket, limit: 10 })).toStrictEqual([document, empty]);
        });
      });

      it('are kept apart and returned exactly for every awkward key', async () => {
        const bucket = await newBucket();
        const documents = awkwardKeys.map((key, at) => live(bucket, key, at + 1, { etag: `e${at}` }));
        await write(documents);
        expect(await store.objects.getMany(bucket, awkwardKeys)).toEqual(documents);
        await expectFound({ bucket }, [...awkwardKeys].sort(byBytes));
        for (const [at, key] of awkwardKeys.entries()) {
          expect(await store.objects.search({ bucket, key, limit: 10 }), JSON.stringify(key)).toEqual([documents[at]]);
        }
      });
    });

    it('answers keys in the order asked, tombstones included, undefined where nothing is stored, at once', async () => {
      const bucket = await newBucket();
      const [a, b, c] = [live(bucket, 'a'), tombstone(bucket, 'b'), live(bucket, 'c')];
      await write([a, b, c]);
      expect(await store.objects.getMany(bucket, ['c', 'nothing', 'b', 'a', 'c'])).toEqual([c, undefined, b, a, c]);
      expect(await store.objects.getMany(bucket, [])).toEqual([]);
    });

    describe('buckets', () => {
      it('that were never created answer bucket.index-missing for their own writes only', async () => {
        const bucket = await newBucket();
        const never = unique('never');
        const answers = await store.objects.write([
          accept(live(bucket, 'a')),
          accept(live(never, 'x')),
          refuse(live(never, 'y')),
          accept(live(bucket, 'b')),
        ]);
        expect(answers).toEqual([
          { kind: 'written' },
          { kind: 'fault', fault: { code: 'bucket.index-missing', reason: expect.stringContaining(never) } },
          { kind: 'fault', fault: { code: 'bucket.index-missing', reason: expect.stringContaining(never) } },
          { kind: 'written' },
        ]);
        expect(await store.objects.getMany(bucket, ['a', 'b'])).toEqual([live(bucket, 'a'), live(bucket, 'b')]);
        // and nothing was created by the attempt
        expect(kinds(await store.objects.write([accept(live(never, 'x'))]))).toEqual(['fault']);
      });

      it('keep their documents when they are created again, by several at once', async () => {
        const bucket = unique('bucket');
        await Promise.all([newBucket(bucket), newBucket(bucket)]);
        await write([live(bucket, 'a')]);
        await newBucket(bucket);
        expect(await stored(bucket, 'a')).toEqual(live(bucket, 'a'));
      });

      it('leave nothing behind when they are removed, and start afresh when created again', async () => {
        const bucket = await newBucket();
        const neighbour = await newBucket(`${bucket}-2`);
        await write([live(bucket, 'words', 9), tombstone(bucket, 'gone', 9), live(neighbour, 'words', 9)]);
        await store.objects.removeBucket(bucket);
        expect(await store.objects.getMany(bucket, ['words', 'gone'])).toEqual([undefined, undefined]);
        expect(kinds(await store.objects.write([accept(live(bucket, 'words', 10))]))).toEqual(['fault']);
        await expectFound({ bucket }, []);
        await store.objects.removeBucket(bucket);
        await newBucket(bucket);
        await write([live(bucket, 'fresh', 1), live(bucket, 'gone', 1)]);
        await expectFound({ bucket }, ['fresh', 'gone']);
        await expectFound({ bucket, ...wordsQuery('words') }, []);
        await expectFound({ bucket: neighbour, ...wordsQuery('words') }, ['words']);
      });

      it('that were never created can be read, searched and removed', async () => {
        const never = unique('never');
        expect(await store.objects.getMany(never, ['a', 'b'])).toEqual([undefined, undefined]);
        await store.objects.removeBucket(never);
        expect(await store.objects.search({ bucket: never, limit: 10 })).toEqual([]);
      });

      it('with any name stand beside each other', async () => {
        const names = ['My_Bucket', 'my_bucket', 'my-bucket', 'my.bucket', 'MY-BUCKET', `long-${'x'.repeat(200)}`, 'h-0123', 'b%'].map(
          unique,
        );
        for (const bucket of names) await newBucket(bucket);
        const documents = names.map((bucket) => live(bucket, 'same', 7, { etag: bucket }));
        await write(documents);
        for (const [at, bucket] of names.entries()) {
          expect(await stored(bucket, 'same')).toEqual(documents[at]);
        }
        const removed = names[0] ?? '';
        await store.objects.removeBucket(removed);
        await eventually(async () => {
          for (const [at, bucket] of names.entries()) {
            const found = await store.objects.search({ bucket, limit: 10 });
            expect(found).toEqual(bucket === removed ? [] : [documents[at]]);
          }
        });
      });
    });

    describe('search', () => {
      /** One index for the cases on words: each has its keys below a prefix of its own, which has no word. */
      let shared: string;
      beforeAll(async () => {
        shared = await newBucket();
      });
      let cases = 0;
      async function below(...keys: readonly string[]): Promise<{ readonly bucket: string; readonly prefix: string }> {
        const prefix = `${'+'.repeat(++cases)}/`;
        await write(keys.map((key) => live(shared, prefix + key)));
        return { bucket: shared, prefix };
      }

      it.each([
        [
          'reports/2024/Q1-Summary_final.PDF',
          ['reports', 'summ', 'reports summ', 'summary rep', 'q 1 final', 'pdf 2024', '20', 'REPORTS Summary'],
        ],
        ['photos/IMG_0042 (copy).jpeg', ['img', 'img 0042', 'copy jp', 'copy copy']],
        ['写真/東京タワー2024.jpg', ['写真', '東京', '東京タワー 2024 jp']],
        ['Straße/Übergröße.doc', ['ubergroß', 'straße uber', 'UBERGR']],
        ['Привет мир.txt', ['привет ми', 'МИР']],
        ['ΟΔΟΣ/άλφα', ['οδος', 'αλφα']],
        ['مرحبا/٣٤', ['مرحبا', '٣']],
        ['สวัสดี/हिन्दी/한국어', ['สวัสดี', 'हिन्दी', '한국']],
        ['iPhone15Pro/dataSet0/scan_0042', ['iphone', 'IPHONE15PRO', 'iphone15p', 'dataset', 'dataset0 42', 'phone 15']],
        ['\u{10400}\u{10401}/\u{1d49c}bc/\ufb01le', ['\u{10428}\u{10429}', 'abc', 'fil']],
      ])('finds %s by its words: each whole, the last as a prefix', async (key, queries) => {
        const place = await below(key, 'unrelated');
        for (const text of queries) await expectFound({ ...place, ...wordsQuery(text) }, [place.prefix + key]);
      });

      it.each([
        [
          'reports/summary.pdf',
          ['report summary', 'eports', 'summary.pdf.x', 'summaries', 'rep summary', 'or', 'not', 'near', 'reportssummary'],
        ],
        ['東京タワー', ['タワー', '東京 タワー']],
        // words are compared as they are: no store may fold, stem or split them again
        ['æther', ['aether']],
        ['ıstanbul', ['istanbul']],
        ['running', ['run running', 'runs']],
        ['٣٤', ['34']],
      ])('does not find %s by what are not its words', async (key, queries) => {
        const place = await below(key);
        await expectFound(place, [place.prefix + key]);
        for (const text of queries) expect(await store.objects.search({ ...place, limit: 10, ...wordsQuery(text) }), text).toEqual([]);
      });

      it('finds keys whose words are the operators of a query language', async () => {
        const place = await below('and/or/not/near', 'words');
        await expectFound({ ...place, ...wordsQuery('AND or NOT near') }, [`${place.prefix}and/or/not/near`]);
        await expectFound({ ...place, ...wordsQuery('words') }, [`${place.prefix}words`]);
      });

      it('takes words of 64 letters, whole and as a prefix', async () => {
        const long = '\u00f8\u{10428}'.repeat(32);
        const place = await below(`${long}/x`);
        for (const text of [`${long} x`, `x ${long}`]) {
          await expectFound({ ...place, ...wordsQuery(text) }, [`${place.prefix}${long}/x`]);
        }
      });

      it('goes on from a cursor whose document is gone, or that lies in another bucket', async () => {
        const both = unique('cursor');
        const first = await newBucket(`a${both}`);
        const second = await newBucket(`b${both}`);
        await write([live(first, 'k1'), live(first, 'k3'), live(second, 'k0'), live(second, 'k2')]);
        await expectFound({ bucket: first, after: { bucket: first, key: 'k2' } }, ['k3']);
        await expectFound({ bucket: first, after: { bucket: second, key: 'k0' } }, []);
        await expectFound({ bucket: second, after: { bucket: first, key: 'k9' } }, ['k0', 'k2']);
        await expectFound({ bucket: second, prefix: 'k', after: { bucket: second, key: 'a' } }, ['k0', 'k2']);
      });
    });

    describe('state', () => {
      const record = { name: 'x', nested: { list: [1, null, 'ü😀', true], empty: {} }, number: 1_790_000_000_000_001 };

      async function created(kind: StateKind, id = `${kind}:${unique('id')}`): Promise<StateEntry> {
        const entry = await store.state.put({ id, kind, record }, null);
        if (entry === 'conflict') throw new Error(`conflict at the first put of ${id}`);
        return entry;
      }

      it('gives back what was put, at once, and creates only where nothing is stored', async () => {
        const entry = await created('bucket');
        expect(entry).toMatchObject({ kind: 'bucket', record });
        expect(await store.state.get(entry.id)).toEqual(entry);
        expect(await store.state.get(unique('nothing'))).toBeUndefined();
        expect(await store.state.put({ id: entry.id, kind: 'bucket', record: { other: true } }, null)).toBe('conflict');
        expect(await store.state.get(entry.id)).toEqual(entry);
      });

      it('gives back at once what is listed soon, and lists it with whatever is listed at once afterwards', async () => {
        const id = unique('soon');
        const first = await store.state.put({ id, kind: 'job', record: { round: 1 }, listed: 'soon' }, null);
        if (first === 'conflict') throw new Error(`conflict at the first put of ${id}`);
        expect(first).toEqual({ id, kind: 'job', record: { round: 1 }, version: first.version });
        expect(await store.state.get(id)).toEqual(first);
        expect(await store.state.put({ id, kind: 'job', record: { round: 2 }, listed: 'soon' }, null)).toBe('conflict');
        const second = await store.state.put({ id, kind: 'job', record: { round: 2 }, listed: 'soon' }, first.version);
        expect(await store.state.get(id)).toEqual(second);
        await created('job');
        expect((await store.state.list('job', { limit: 1_000 })).find((entry) => entry.id === id)).toEqual(second);
      });

      it('updates only the version that was read', async () => {
        const first = await created('bucket');
        const second = await store.state.put({ id: first.id, kind: 'bucket', record: { round: 2 } }, first.version);
        expect(second).toMatchObject({ id: first.id, record: { round: 2 } });
        expect(await store.state.put({ id: first.id, kind: 'bucket', record: { round: 3 } }, first.version)).toBe('conflict');
        expect(await store.state.get(first.id)).toEqual(second);
        // equal content is a new version all the same
        const version = second === 'conflict' ? '' : second.version;
        await store.state.put({ id: first.id, kind: 'bucket', record: { round: 2 } }, version);
        expect(await store.state.put({ id: first.id, kind: 'bucket', record: {} }, version)).toBe('conflict');
        const absent = unique('absent');
        expect(await store.state.put({ id: absent, kind: 'bucket', record }, version)).toBe('conflict');
        expect(await store.state.get(absent)).toBeUndefined();
      });

      it('removes only the version that was read; an absent id counts as removed', async () => {
        const first = await created('bucket');
        const second = await store.state.put({ id: first.id, kind: 'bucket', record: {} }, first.version);
        if (second === 'conflict') throw new Error('conflict');
        expect(await store.state.remove(first.id, first.version)).toBe('conflict');
        expect(await store.state.get(first.id)).toEqual(second);
        expect(await store.state.remove(first.id, second.version)).toBe('removed');
        expect(await store.state.get(first.id)).toBeUndefined();
        expect(await store.state.remove(first.id, second.version)).toBe('removed');
      });

      it('removes at once what lists may show for a moment', async () => {
        const entry = await created('job');
        expect(await store.state.remove(entry.id, 'v', undefined, 'soon')).toBe('conflict');
        expect(await store.state.remove(entry.id, entry.version, undefined, 'soon')).toBe('removed');
        expect(await store.state.get(entry.id)).toBeUndefined();
        // what is listed at once afterwards brings the lists up to date
        await created('job');
        expect((await store.state.list('job', { limit: 1_000 })).filter(({ id }) => id === entry.id)).toEqual([]);
      });

      it('never takes the version of a removed entry for that of its successor', async () => {
        const first = await created('bucket');
        await store.state.remove(first.id, first.version);
        expect(await store.state.put({ id: first.id, kind: 'bucket', record }, first.version)).toBe('conflict');
        const next = await created('bucket', first.id);
        expect(await store.state.put({ id: first.id, kind: 'bucket', record: {} }, first.version)).toBe('conflict');
        expect(await store.state.remove(first.id, first.version)).toBe('conflict');
        expect(await store.state.get(first.id)).toEqual(next);
      });

      it('lets exactly one of several concurrent puts win', async () => {
        const id = unique('race');
        const creates = await Promise.all([1, 2, 3, 4].map((by) => store.state.put({ id, kind: 'lock', record: { by } }, null)));
        const winners = creates.filter((answer) => answer !== 'conflict');
        expect(winners).toHaveLength(1);
        expect(await store.state.get(id)).toEqual(winners[0]);
        const version = winners[0]?.version ?? '';
        const updates = await Promise.all([5, 6, 7, 8].map((by) => store.state.put({ id, kind: 'lock', record: { by } }, version)));
        expect(updates.filter((answer) => answer !== 'conflict')).toHaveLength(1);
      });

      it('lists one kind in the order of its ids and counts it, right after the put', async () => {
        const ids = ['\u{1f600}', '\ufffd', 'a', 'B', 'a/b', 'a b', 'a%', 'a_', '\u00fc', 'u\u0308', '"', '\\', '*', 'x'.repeat(512)];
        ids.push('e'.repeat(511), `${'e'.repeat(511)}f`, '\u00e9'.repeat(256));
        const before = await store.state.count('gap');
        for (const [at, id] of ids.entries()) {
          const entry = await created('gap', id);
          expect(await store.state.count('gap')).toBe(before + at + 1);
          expect((await store.state.list('gap', { limit: 1_000 })).find((listed) => listed.id === id)).toEqual(entry);
        }
        await created('job');
        const listed = await store.state.list('gap', { limit: 1_000 });
        expect(listed.map(({ id }) => id)).toEqual([...ids].sort(byBytes));
        expect(listed.every(({ kind }) => kind === 'gap')).toBe(true);
        expect(listed[0]).toEqual(await store.state.get(listed[0]?.id ?? ''));
        expect(await statePages('gap', 3)).toEqual([...ids].sort(byBytes));
      });

      async function statePages(kind: StateKind, limit: number): Promise<string[]> {
        const ids: string[] = [];
        for (;;) {
          const after = ids.at(-1);
          const page = await store.state.list(kind, { limit, ...(after !== undefined && { after }) });
          expect(page.length).toBeLessThanOrEqual(limit);
          ids.push(...page.map(({ id }) => id));
          if (page.length < limit) return ids;
        }
      }

      it('no longer lists or counts what was removed', async () => {
        const entry = await created('schedule');
        expect(await store.state.count('schedule')).toBe(1);
        await store.state.remove(entry.id, entry.version);
        expect(await store.state.count('schedule')).toBe(0);
        expect(await store.state.list('schedule', { limit: 10 })).toEqual([]);
      });

      it('finds jobs that are due', async () => {
        const nowMs = 1_790_000_000_000;
        const when = { nowMs, aheadMaxMs: 300_000, limit: 32 };
        const put = async (kind: StateKind, id: string, more: object) => {
          const entry = await store.state.put({ id, kind, record: { id, ...more } }, null);
          if (entry === 'conflict') throw new Error(`conflict at the first put of ${id}`);
          return entry;
        };
        const later = await put('job', 'job:due:later', { dueAtMs: nowMs + 299_999.5 });
        expect(await store.state.due(when)).toEqual([]);
        await put('job', 'job:due:now', { dueAtMs: nowMs, lease: { worker: 'w' }, examples: { missing: [{ key: 'k' }] } });
        await put('job', 'job:due:fast', { dueAtMs: nowMs + 300_001 });
        await put('job', 'job:due:past', { dueAtMs: 0 });
        await put('job', 'job:due:done', { done: true });
        await put('schedule', 'schedule:due', { dueAtMs: 0 });
        const found = await store.state.due(when);
        expect(found.toSorted(byBytes)).toEqual(['job:due:fast', 'job:due:now', 'job:due:past']);
        expect(await store.state.due({ ...when, limit: 2 })).toHaveLength(2);
        // a record that is stored without its time is not found any more
        await store.state.put({ id: later.id, kind: 'job', record: { id: later.id } }, later.version);
        expect(await store.state.due({ ...when, nowMs: nowMs + 400_000 })).toHaveLength(3);
        for (const id of ['job:due:now', 'job:due:fast', 'job:due:past', 'job:due:done', 'schedule:due', later.id]) {
          const entry = await store.state.get(id);
          if (entry !== undefined) await store.state.remove(id, entry.version);
        }
      });
    });

    describe('any sequence of writes', () => {
      const oneWrite = fc.record({
        key: fc.constantFrom('a', 'b', '\u{1f600}'),
        clock: fc.integer({ min: 1, max: 4 }),
        deleted: fc.boolean(),
        equalClock: fc.constantFrom('accept' as const, 'refuse' as const),
        etag: fc.constantFrom('e1', 'e2', 'e3'),
      });

      it('ends as the clock rule says, answer for answer and document for document', async () => {
        const bucket = await newBucket();
        let history = 0;
        const histories = fc.array(fc.array(oneWrite, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 });
        await fc.assert(
          fc.asyncProperty(histories, async (batches) => {
            history += 1;
            const model = new Map<string, ObjectDocument>();
            const keyOf = (key: string): string => `h${history}/${key}`;
            for (const batch of batches) {
              const writes = batch.map(({ key, clock, deleted, equalClock, etag }) => ({
                document: deleted ? tombstone(bucket, keyOf(key), clock) : live(bucket, keyOf(key), clock, { etag }),
                equalClock,
              }));
              const answers = await store.objects.write(writes);
              expect(kinds(answers)).toEqual(writes.map((one) => applied(model, one)));
            }
            const keys = ['a', 'b', '\u{1f600}'].map(keyOf);
            expect(await store.objects.getMany(bucket, keys)).toEqual(keys.map((key) => model.get(key)));
            const alive = keys.filter((key) => model.get(key)?.deleted === false);
            await expectFound({ bucket, prefix: `h${history}/` }, alive);
            await expectFound(
              { bucket, ...wordsQuery(`h ${history} a`) },
              alive.filter((key) => key.endsWith('/a')),
            );
          }),
          { numRuns: 15, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
        );
      });
    });
  });
}

/** The clock rule in its plainest form: what the write answers, and what the model holds after it. */
function applied(model: Map<string, ObjectDocument>, { document, equalClock }: IndexWrite): string {
  const held = model.get(document.key);
  if (held !== undefined && held.clock > document.clock) return 'superseded';
  if (held !== undefined && held.clock === document.clock && equalClock === 'refuse') return 'equal';
  model.set(document.key, document);
  return 'written';
}
