import { expect, it } from 'vitest';
import { z } from 'zod';
import { objectDocumentSchema } from '../../src/ordering/document.ts';
import { settingGroups, settingsSchema } from '../../src/settings/settings.ts';
import { withFacts } from './facts.ts';
import { textOf } from './pages.ts';
import { pages } from './write-docs.ts';

it.each(Object.entries(pages))('%s says what the code says (npm run docs writes it)', (path, page) => {
  expect(textOf(path)).toBe(page());
});

// a row's `cli.description` says it in the words of the command line
it('the help of a command names commands, and no paths of the API', () => {
  expect(textOf('docs/reference/cli.md')).not.toContain('/v1/');
});

it('a number in a sentence is written from the code, and the sentence must be there', () => {
  const page = textOf('README.md');
  expect(withFacts('README.md', page.replace('more than 1,000 documents', 'more than 7 documents'))).toBe(page);
  expect(() => withFacts('README.md', 'It deletes nothing.')).toThrow('README.md has 0 times');
});

it('docs/reference/fields.md describes every field of the index, with its type, and no other', () => {
  const page = textOf('docs/reference/fields.md');
  const { mappings } = z
    .object({ mappings: z.object({ properties: z.record(z.string(), z.object({ type: z.string() })) }) })
    .parse(JSON.parse(textOf('config/opensearch/objects.json')));
  const rows = [...page.matchAll(/^\| `([a-z_0-9]+)` \| (\w+) \|/gm)].map(([, field, type]) => [field, type]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(Object.entries(mappings.properties).map(([name, { type }]) => [name, type])));
  expect(Object.keys(objectDocumentSchema.shape).filter((field) => !(field in mappings.properties))).toEqual([]);
});

it('docs/reference/settings.md has every setting, in one group, in sentences that fit into a table', () => {
  const grouped = Object.values(settingGroups).flatMap((group) => Object.keys(group));
  expect(grouped.toSorted()).toEqual(Object.keys(settingsSchema.shape).toSorted());
  for (const [name, { description }] of Object.entries(settingsSchema.shape))
    expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z/][^|\n]+\.$/)]);
});
