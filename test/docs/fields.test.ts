/** docs/reference/fields.md: every field of the index is described, and its queries answer on a real OpenSearch what the page says. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { objectDocumentSchema, documentOf } from '../../src/domain/documents/document.ts';
import { fencesOf, textOf } from './pages.ts';
import { opensearchUrl } from '../support/servers/found.ts';
import { openTestStore, serverUrl, type TestStore } from '../support/servers/opensearch.ts';

const PAGE = textOf('docs/reference/fields.md');

const fieldSchema = z.object({ type: z.string(), index: z.boolean().default(true), doc_values: z.boolean().default(true) });
const { mappings } = z
  .object({ mappings: z.object({ properties: z.record(z.string(), fieldSchema) }) })
  .parse(JSON.parse(textOf('config/opensearch/objects.json')));

it('describes every field of the index, with its type, and no other', () => {
  const rows = [...PAGE.matchAll(/^\| `([a-z_0-9]+)` \| (\w+) \|/gm)].map(([, field, type]) => [field, type]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(Object.entries(mappings.properties).map(([name, { type }]) => [name, type])));
  expect(Object.keys(objectDocumentSchema.shape).filter((field) => !(field in mappings.properties))).toEqual([]);
});

it('names the fields that can only be read, and those that a query can sort by', () => {
  const fields = Object.entries(mappings.properties);
  const namesAfter = (text: string) => [...(PAGE.split(text)[1]?.split('.')[0] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const readOnly = fields.filter(([, { index, doc_values: values }]) => !index && !values).map(([name]) => name);
  expect(namesAfter('can only be read:')).toEqual(readOnly);
  const sortable = fields.filter(([, { type, doc_values: values }]) => values && !['flat_object', 'wildcard'].includes(type));
  expect(namesAfter('sort and aggregate by these:')).toEqual(sortable.map(([name]) => name));
});

describe.skipIf(opensearchUrl() === undefined)('queries of your own', () => {
  let test: TestStore;

  beforeAll(async () => {
    test = openTestStore();
    const { objects, setup } = test.store;
    await setup.prepare();
    await objects.createBucket('photos');
    const nowMs = Date.now();
    const document = (key: string, sizeBytes: number) =>
      documentOf({
        bucket: 'photos',
        key,
        state: { present: true, sizeBytes, storageClass: 'STANDARD' },
        clock: nowMs * 1_000,
        settled: true,
        source: 'listing',
        cause: {},
        stateAtMs: nowMs,
        nowMs,
      });
    const documents = [document('2026/03/small.pdf', 10), document('2026/03/large.pdf', 30), document('2026/04/other.txt', 50)];
    const deleted = documentOf({ ...document('2026/03/gone.pdf', 1), state: { present: false }, cause: {}, stateAtMs: nowMs, nowMs });
    await objects.write([...documents, deleted].map((each) => ({ document: each, equalClock: 'refuse' as const })));
    await test.refresh();
  });

  afterAll(() => test.dispose());

  it('find the largest files, and the bytes of a folder by storage class', () => {
    const block = fencesOf(PAGE).find(({ text }) => text.includes('$OPENSEARCH'))!.text;
    const [largest = '', byClass = ''] = block.split('\n\n').map((command) =>
      execFileSync('sh', ['-c', command.replaceAll('tally-', `${test.prefix}-`)], {
        env: { ...process.env, OPENSEARCH: serverUrl() },
        encoding: 'utf8',
      }),
    );
    const keys = z
      .object({ hits: z.object({ hits: z.array(z.object({ _source: z.object({ key: z.string() }) })) }) })
      .parse(JSON.parse(largest))
      .hits.hits.map(({ _source }) => _source.key);
    expect(keys).toEqual(['2026/03/large.pdf', '2026/03/small.pdf']);
    expect(JSON.parse(byClass)).toMatchObject({ aggregations: { class: { buckets: [{ key: 'STANDARD', bytes: { value: 40 } }] } } });
  });
});
