/** What a page types by hand although the code has it: numbers in sentences, and defaults beside the names of settings. */
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/settings/settings.ts';
import { withFacts } from './facts.ts';
import { pages, textOf } from './pages.ts';

describe('a number in a sentence', () => {
  const README = textOf('README.md');

  it('is written from the code', () => {
    const wrong = README.replace('deleted 1,000 documents', 'deleted 7 documents');
    expect(wrong).not.toBe(README);
    expect(withFacts('README.md', wrong)).toBe(README);
  });

  it('must stand where the code is to write it', () => {
    expect(() => withFacts('README.md', 'It deletes nothing.')).toThrow('README.md has 0 times the sentence');
  });
});

/** A default as the pages write it: behind the name of a setting in brackets, or before it with the words “by default”. */
const BEHIND =
  /\b(TALLY_[A-Z0-9_]+)`?(?:\]\([^)]*\))? \((?:[^()]*\bby default )?`?([\w.:/,-]+?)`?(?: (ms|s|min|hours?|days?|MiB|bytes))?(?: by default)?\)/g;
const BEFORE = /`?([\w.:/,-]+)`? (?:(ms|s|min|hours?|days?|MiB|bytes) )?(?:after it )?by default \(`?(TALLY_[A-Z0-9_]+)/g;
/** How many of the smallest unit that a setting may have, milliseconds or bytes, one of each is. */
const SIZES: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  bytes: 1,
  MiB: 1_048_576,
};
const SUFFIXES: Readonly<Record<string, number>> = { MS: 1, S: 1_000, DAYS: 86_400_000, BYTES: 1 };

const defaults = new Map<string, unknown>(Object.entries(settingsSchema.parse({})));

/** Each default that a text types beside the name of its setting and that is not the default. */
function wrongDefaultsIn(text: string): readonly string[] {
  const behind = [...text.matchAll(BEHIND)].map(([found, name = '', value = '', unit]) => ({ found, name, value, unit }));
  const before = [...text.matchAll(BEFORE)].map(([found, value = '', unit, name = '']) => ({ found, name, value, unit }));
  return [...behind, ...before]
    .filter(({ name, value, unit }) => defaults.has(name) && !isDefault(name, value, unit?.replace(/(hour|day)s/, '$1')))
    .map(({ found }) => found);
}

function isDefault(name: string, value: string, unit: string | undefined): boolean {
  const known = defaults.get(name);
  if (typeof known !== 'number') return value === String(known);
  const typed = Number(value.replaceAll(',', ''));
  if (unit === undefined) return typed === known;
  return typed * (SIZES[unit] ?? Number.NaN) === known * (SUFFIXES[name.split('_').at(-1) ?? ''] ?? Number.NaN);
}

describe('the default of a setting that a page types', () => {
  const SCHEMA = 'docs/reference/settings.md';
  const files = [...pages().filter((page) => page !== SCHEMA), 'CHANGELOG.md', 'config/monitoring/alerts.yaml'];

  it.each(files)('is in %s that of the schema', (file) => {
    expect(wrongDefaultsIn(textOf(file))).toEqual([]);
  });

  it('is found where a wrong one is planted', () => {
    const planted = [
      'up to `TALLY_SHUTDOWN_TIMEOUT_MS` (20 s)',
      'every [`TALLY_COMPARE_INTERVAL_DAYS`](settings.md) (8)',
      'the prefix TALLY_INDEX_PREFIX (`tallies` by default)',
      'ends after `TALLY_SESSION_DAYS` (1 to 90, by default 8)',
      'it ends 8 days after it by default (`TALLY_SESSION_DAYS`)',
    ];
    for (const text of planted) expect(wrongDefaultsIn(text)).toHaveLength(1);
    expect(wrongDefaultsIn('`TALLY_SHUTDOWN_TIMEOUT_MS` (25 s), `TALLY_INDEX_PREFIX` (tally)')).toEqual([]);
  });
});
