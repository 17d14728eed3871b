/** Tables that are written from the code stand between two comments of their page. `-u` writes them. */
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { settingsSchema } from '../../src/settings/settings.ts';
import { metricsMarkdown, settingsMarkdown, tracesMarkdown } from '../support/docs-tables.ts';
import { ROOT, textOf } from '../support/docs-pages.ts';

/** The page with this table between its comments. */
function pageWith(page: string, table: string): string {
  const written = textOf(page).replace(
    /(<!-- table of [^>]*-->\n).*?(<!-- end of table -->)/s,
    (_, begin: string, end: string) => `${begin}${table}\n${end}`,
  );
  expect(written).toContain(table);
  return written;
}

it.each([
  ['docs/operations.md', 'every metric', metricsMarkdown],
  ['docs/traces.md', 'every variable of OpenTelemetry that is honoured', tracesMarkdown],
])('%s has the row of %s', async (page, _, table) => {
  await expect(pageWith(page, table())).toMatchFileSnapshot(`${ROOT}${page}`);
});

it.skipIf(!existsSync(`${ROOT}docs/settings.md`))('docs/settings.md names every setting', () => {
  const rows = settingsMarkdown().split('\n').slice(2);
  const page = textOf('docs/settings.md');
  expect(rows.map((row) => row.split('|')[1]!.trim()).filter((name) => !page.includes(name))).toEqual([]);
});

it('describes every setting in words that fit into a table', () => {
  for (const [name, { description }] of Object.entries(settingsSchema.shape)) {
    expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z/][^|\n]+\.$/)]);
  }
});
