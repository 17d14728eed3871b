/** docs/reference/fields.md describes every field of the index. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { objectDocumentSchema } from '../../src/ordering/document.ts';
import { textOf } from './pages.ts';

const PAGE = textOf('docs/reference/fields.md');

const fieldSchema = z.object({ type: z.string() });
const { mappings } = z
  .object({ mappings: z.object({ properties: z.record(z.string(), fieldSchema) }) })
  .parse(JSON.parse(textOf('config/opensearch/objects.json')));

it('describes every field of the index, with its type, and no other', () => {
  const rows = [...PAGE.matchAll(/^\| `([a-z_0-9]+)` \| (\w+) \|/gm)].map(([, field, type]) => [field, type]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(Object.entries(mappings.properties).map(([name, { type }]) => [name, type])));
  expect(Object.keys(objectDocumentSchema.shape).filter((field) => !(field in mappings.properties))).toEqual([]);
});
