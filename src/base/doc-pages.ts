/** Links to documentation pages in texts for people: this version's pages in the repository. */

import packageJson from '../../package.json' with { type: 'json' };

const [HOME = ''] = packageJson.homepage.split('#');
const FILES = `${HOME}/blob/v${packageJson.version}/`;
const ADDRESS = new RegExp(String.raw`(${FILES.replaceAll('.', String.raw`\.`)}docs/[a-z/-]+\.md(?:#[\w-]+)?)`, 'g');

/** Returns the address of a page by its path in the repository, with the anchor of a heading if it needs one. */
export function docsPage(page: string): string {
  return `${FILES}${page}`;
}

/** Returns the address of the page that explains a code of an error. */
export function pageOfCode(code: string): string {
  return docsPage(`docs/reference/error-codes.md#${code.replaceAll('.', '-')}`);
}

/** Returns the parts of a text in their order: the address of a page that it names, or what stands before, between and after them. */
export function pagesIn(text: string): readonly { readonly text: string; readonly isPage: boolean }[] {
  const parts = text.split(ADDRESS).map((part, index) => ({ text: part, isPage: index % 2 === 1 }));
  return parts.filter((part) => part.text !== '');
}
