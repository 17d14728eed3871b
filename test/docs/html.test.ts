/** The documentation as a registry serves it: static pages whose links lead to pages and headings that are served too. */
import { dirname, join, normalize } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildDocs } from '../../src/docs/build.ts';
import { faults } from '../../src/domain/fault.ts';
import { requestErrors } from '../../src/domain/request-error.ts';
import { addressOfCode } from '../../src/api/problem.ts';

let files: ReadonlyMap<string, Uint8Array>;
const htmlOf = (path: string): string => new TextDecoder().decode(files.get(path));
const pagesOf = (): readonly string[] => [...files.keys()].filter((path) => path.endsWith('.html'));
const idsOf = (path: string): ReadonlySet<string> => new Set([...htmlOf(path).matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id));

beforeAll(async () => {
  files = await buildDocs();
});

describe('the rendered documentation', () => {
  it('has a page for each page of docs/ but the internals, and a style sheet', () => {
    expect(pagesOf()).toEqual(
      expect.arrayContaining(['README.html', 'guides/search.html', 'operate/alerts.html', 'reference/error-codes.html']),
    );
    expect(pagesOf().filter((path) => path.includes('internals'))).toEqual([]);
    expect(files.has('style.css')).toBe(true);
  });

  it('has neither scripts nor styles in its pages, which the policy of the panel would refuse', () => {
    for (const path of pagesOf()) expect(htmlOf(path)).not.toMatch(/<script|<style| style=| on\w+="/);
  });

  it('leads to what is served', () => {
    const broken = pagesOf().flatMap((path) =>
      [...htmlOf(path).matchAll(/(?:href|src)="([^"]+)"/g)]
        .map(([, link = '']) => link)
        .filter((link) => !/^(https?|data):/.test(link))
        .filter((link) => {
          const [file = '', id] = link.split('#');
          const target = file === '' ? path : normalize(join(dirname(path), file));
          return !files.has(target) || (id !== undefined && !idsOf(target).has(id));
        })
        .map((link) => `${path}: ${link}`),
    );
    expect(broken).toEqual([]);
  });

  it('explains each code at the address that problem documents name', () => {
    const ids = idsOf('reference/error-codes.html');
    const codes = [...Object.keys(faults), ...Object.keys(requestErrors)] as readonly Parameters<typeof addressOfCode>[0][];
    const missing = codes.filter((code) => {
      const [page, id = ''] = addressOfCode(code).split('#');
      return page !== '/docs/reference/error-codes.html' || !ids.has(id);
    });
    expect(missing).toEqual([]);
  });

  it('shows the HTML of a page as text, and keeps what maintainers note to them', () => {
    const page = htmlOf('reference/metrics.html');
    expect(page).toContain('<div class="table"><table>');
    expect(page).not.toContain('&lt;!--');
    for (const path of pagesOf()) expect(htmlOf(path)).not.toContain('&lt;a id=');
  });
});
