/** What both stores must keep of enriched documents, through the writer that the data path uses. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/process/clock.ts';
import { plainDocument } from '../../src/ordering/enrichment.ts';
import { documentOf, type ObjectDocument, type PresentState } from '../../src/ordering/document.ts';
import { withPlainFallback } from '../../src/observing/enricher.ts';
import { createBulkWriter, type WriteDocument } from '../../src/observing/bulk-writer.ts';
import type { WriteAnswer } from '../../src/store/store.ts';
import { createFakeTelemetry, type FakeTelemetry } from '../support/fakes/ports.ts';
import { contractWorld, unique, type OpenStore } from './world.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';

const plain: PresentState = { present: true, etag: 'e', sizeBytes: 5, lastModifiedMs: 1_000, lastModifiedExact: false };
const enriched: PresentState = {
  ...plain,
  lastModifiedMs: 0,
  lastModifiedExact: true,
  contentType: 'text/plain; charset=utf-8',
  userMetadata: { author: 'Jürgen' },
  tags: { 'cost.center': '42' },
  storageClass: 'GLACIER',
  expiresAtMs: 86_400_000,
};

/** What S3 takes, and what only others that speak S3 take. */
const awkwardTexts: readonly (readonly [what: string, texts: Readonly<Record<string, string>>])[] = [
  ['none', {}],
  ['ten of the greatest length', Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`${at}${'😀'.repeat(63)}`, '😀'.repeat(128)]))],
  ['dots', { 'a.b': '1', 'a.b.c': '2', '.': '3', '..': '4', '.a': '5', 'a.': '6', 'a..b': '7' }],
  ['a key that is the path of another', { a: '1', 'a.b': '2' }],
  ['a key deeper than any mapping', { [Array.from({ length: 64 }, () => 'a').join('.')]: '1' }],
  ['empty and blank ones', { '': '', ' ': ' ', a: '' }],
  ['all that S3 lets a tag have', { 'Größe/ü 1+-=._:@': 'a b+-=._:/@ß' }],
  ['words of JSON, Java and JavaScript', { constructor: 'a', 'a"b\\c\n': 'd\u0000\t"', 'a*': '*', 'a=b': '=', _id: '_source' }],
  ['the name of a prototype', JSON.parse('{"__proto__": "x", "a": "b"}') as Record<string, string>],
  ['encoded words', { author: '=?UTF-8?B?w7w=?=' }],
];

/** Declares the contract's tests for one store. */
export function enrichmentContract(
  name: string,
  { open, takesAnyLength }: { readonly open: () => Promise<OpenStore>; readonly takesAnyLength: boolean },
): void {
  describe(`${name} keeps enriched documents`, () => {
    const bucket = unique('enriched');
    const world = contractWorld(open);
    let telemetry: FakeTelemetry;
    let writeDocument: WriteDocument;

    beforeAll(async () => {
      telemetry = createFakeTelemetry();
      const limits = { actionsMax: 100, bytesMax: 5e6, lingerMs: 1, concurrency: 1 };
      writeDocument = withPlainFallback(
        createBulkWriter({
          objects: world.store.objects,
          clock: systemClock,
          telemetry,
          circuits: createTestCircuits({ clock: systemClock, telemetry }),
          limits,
        }),
        telemetry,
      );
      await world.newBucket(bucket);
    });

    function document(key: string, state: PresentState, clock = 1_000): ObjectDocument {
      const facts = { bucket, key, clock, settled: true, source: 'native', cause: {}, stateAtMs: 0, nowMs: clock } as const;
      return documentOf({ ...facts, state });
    }
    /** As an exact event is written. */
    const write = (written: ObjectDocument): Promise<WriteAnswer> =>
      writeDocument({ document: written, equalClock: 'refuse', expiresAtMs: Infinity });
    const stored = async (key: string): Promise<ObjectDocument | undefined> => (await world.store.objects.getMany(bucket, [key]))[0];

    it.each(awkwardTexts)('whose tags and user metadata are %s, and gives them back', async (what, texts) => {
      const written = document(what, { ...enriched, tags: texts, userMetadata: texts });
      expect(await write(written)).toEqual({ kind: 'written' });
      expect(telemetry.labels('tally_enrich_total')).toEqual([]);
      expect(await stored(what)).toStrictEqual(written);
      await world.refresh();
      await vi.waitFor(async () => expect(await world.store.objects.search({ bucket, key: what, limit: 2 })).toStrictEqual([written]), {
        timeout: 100_000,
        interval: 100,
      });
    });

    it.each(['contentType', 'tags', 'userMetadata'] as const)(
      'with a long %s, and plain where it is longer than the store takes',
      async (field) => {
        const withText = (key: string, length: number): ObjectDocument => {
          const text = 'x'.repeat(length);
          return document(key, { ...enriched, [field]: field === 'contentType' ? text : { a: text } });
        };
        const told = telemetry.labels('tally_enrich_total').length;
        const long = withText(`long-${field}`, 32_000);
        const longer = withText(`longer-${field}`, 40_000);
        expect([await write(long), await write(longer)]).toEqual([{ kind: 'written' }, { kind: 'written' }]);
        expect(await stored(long.key)).toEqual(long);
        expect(await stored(longer.key)).toEqual(takesAnyLength ? longer : plainDocument(longer));
        const results = telemetry.labels('tally_enrich_total').map(({ enrich, result }) => `${enrich} ${result}`);
        expect(results.slice(told)).toEqual(takesAnyLength ? [] : ['head index.rejected', 'tags index.rejected']);
      },
    );
  });
}
