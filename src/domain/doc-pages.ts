/**
 * Pages of the documentation in texts for people. What makes such a text names a page in angle brackets, `<docs/guides/connect.md>`,
 * with the anchor of a heading if it needs one. Where the page can be opened is known only where the text is shown, so it is that
 * place which passes the text through {@link withPagesAddressed}. No key of an object is taken for a page, because of the brackets.
 */

import packageJson from '../../package.json' with { type: 'json' };

const [HOME = ''] = packageJson.homepage.split('#');
const PAGE = /<(docs\/[a-z/-]+\.md(?:#[\w-]+)?)>/g;

/** Returns the text with the address of each page as `addressOf` gives it. */
export function withPagesAddressed(text: string, addressOf: (page: string) => string): string {
  return text.replaceAll(PAGE, (_, page: string) => addressOf(page));
}

/** Returns where a page can be opened: at the registry of that address, which serves its own version of it, otherwise in the repository. */
export function addressOfPage(page: string, registryUrl: string | undefined): string {
  return registryUrl === undefined ? `${HOME}/blob/main/${page}` : `${registryUrl.replace(/\/$/, '')}${servedPath(page)}`;
}

/** Returns the parts of a text in their order: a page that it names, or what stands before, between and after pages. */
export function pagesIn(text: string): readonly { readonly text: string; readonly page?: string }[] {
  const parts = text.split(PAGE).map((part, index) => (index % 2 === 0 ? { text: part } : { text: part, page: part }));
  return parts.filter((part) => part.text !== '');
}

/** Returns where a registry serves a page, without its own address. */
export function servedPath(page: string): string {
  return `/${page.replace(/\.md(?=#|$)/, '.html')}`;
}

/** Returns the page that explains a code of an error. */
export function pageOfCode(code: string): string {
  return `docs/reference/error-codes.md#${code.replaceAll('.', '-')}`;
}
