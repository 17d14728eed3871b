import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/settings/settings.ts';
import { metricsMarkdown, settingsMarkdown, tracesMarkdown } from '../support/readme-tables.ts';

/** What the code says and the README does not; paste it there. */
function missingRows(table: string): readonly string[] {
  const readme = new Set(readFileSync(new URL('../../README.md', import.meta.url), 'utf8').split('\n'));
  return table.split('\n').filter((row) => !readme.has(row));
}

describe('README.md', () => {
  it('has the row of every metric', () => {
    expect(missingRows(metricsMarkdown())).toEqual([]);
  });

  it('has the row of every setting', () => {
    expect(missingRows(settingsMarkdown())).toEqual([]);
  });

  it('has the row of every variable of OpenTelemetry that is honoured', () => {
    expect(missingRows(tracesMarkdown())).toEqual([]);
  });
});

it('describes every setting in words that fit into a table', () => {
  for (const [name, { description }] of Object.entries(settingsSchema.shape)) {
    expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z/][^|\n]+\.$/)]);
  }
});
