import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { addressOfPage, pagesIn, servedPath, withPagesAddressed } from '../../src/domain/doc-pages.ts';

const TEXT = 'see <docs/guides/connect.md#special-buckets>, and docs/guides/connect.md, which is a key';

describe('a page of the documentation in a text', () => {
  it('is addressed at the registry that answers, and otherwise in the repository', () => {
    const at = (url: string | undefined): string => withPagesAddressed(TEXT, (page) => addressOfPage(page, url));
    expect(at('https://tally.example.com/')).toBe(
      'see https://tally.example.com/docs/guides/connect.html#special-buckets, and docs/guides/connect.md, which is a key',
    );
    const [home] = packageJson.homepage.split('#');
    expect(at(undefined)).toContain(`see ${home}/blob/main/docs/guides/connect.md#special-buckets, and`);
  });

  it('stands alone among the parts of its text', () => {
    expect(pagesIn(TEXT).map(({ text, page }) => (page === undefined ? text.length : servedPath(page)))).toEqual([
      4,
      '/docs/guides/connect.html#special-buckets',
      44,
    ]);
    expect(pagesIn('no page')).toEqual([{ text: 'no page' }]);
  });
});
