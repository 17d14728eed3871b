/** Links in texts for people to the documentation pages of this version, in the repository. */

import packageJson from '../../package.json' with { type: 'json' };

const [HOME = ''] = packageJson.homepage.split('#');
const FILES = `${HOME}/blob/v${packageJson.version}/`;
const ADDRESS = new RegExp(String.raw`(${FILES.replaceAll('.', String.raw`\.`)}docs/[a-z/-]+\.md(?:#[\w-]+)?)`, 'g');

/** Returns the address of a page from its path in the repository; the path may end in the anchor of a heading. */
export function docsPage(page: string): string {
  return `${FILES}${page}`;
}

/** Returns the address of the page that explains an error code. */
export function pageOfCode(code: string): string {
  return docsPage(`docs/reference/error-codes.md#${code.replaceAll('.', '-')}`);
}

/** Splits a text at the addresses of documentation pages, and returns the addresses and the texts around them in their order. */
export function pagesIn(text: string): readonly { readonly text: string; readonly isPage: boolean }[] {
  const parts = text.split(ADDRESS).map((part, index) => ({ text: part, isPage: index % 2 === 1 }));
  return parts.filter((part) => part.text !== '');
}
