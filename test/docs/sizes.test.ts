/** How long each page may be, in bytes, and all of them together: who looks something up reads one page, not ten. */
import { expect, it } from 'vitest';
import { pages, textOf } from './pages.ts';

const KB = 1_000;

/** The pages that are written from the code as a whole or almost: they are as long as what they list. */
const GENERATED: ReadonlySet<string> = new Set(
  ['api', 'cli', 'error-codes', 'metrics', 'settings', 'permissions'].map((name) => `docs/reference/${name}.md`),
);

/** The limits of single pages. Any other has at most {@link PAGE_MAX}. */
const LIMITS: Readonly<Record<string, number>> = {
  'README.md': 6 * KB,
  'docs/README.md': 3 * KB,
  'docs/start/local.md': 3 * KB,
  'docs/start/aws.md': 6 * KB,
  'docs/concepts.md': 6 * KB,
  'docs/compare.md': 3 * KB,
  'docs/audit.md': 7 * KB,
  'docs/operate/troubleshooting.md': 6 * KB,
  'docs/reference/endpoints-proxies.md': 6 * KB,
  'docs/guides/connect.md': 8 * KB,
  // above what is wanted
  'docs/internals/decisions.md': 16 * KB,
  'docs/internals/faults.md': 18.5 * KB,
  'docs/internals/recipes.md': 16 * KB,
};
const PAGE_MAX = 10 * KB;

/** A table that is written from the code is no text by hand. */
const TABLE = /<!-- table of [^>]* written from src\/.*?<!-- end of table -->/gs;
const size = (path: string): number => Buffer.byteLength(textOf(path));
const sizeByHand = (path: string): number => Buffer.byteLength(textOf(path).replaceAll(TABLE, ''));
const WRITTEN = pages().filter((path) => !GENERATED.has(path));
const isInternal = (path: string): boolean => path.startsWith('docs/internals/');
const sumOf = (paths: readonly string[]): number => paths.reduce((sum, path) => sum + sizeByHand(path), 0);

it.each(WRITTEN)('%s is not longer than its limit', (path) => {
  expect(size(path)).toBeLessThanOrEqual(LIMITS[path] ?? PAGE_MAX);
});

it('the pages that are written by hand have a limit together, and so have those for maintainers', () => {
  const docs = WRITTEN.filter((path) => path !== 'README.md');
  expect(sumOf(docs.filter((path) => !isInternal(path)))).toBeLessThanOrEqual(190 * KB);
  // with room for a sentence, so that it need not push out another
  expect(sumOf(docs.filter(isInternal))).toBeLessThanOrEqual(92 * KB);
});
