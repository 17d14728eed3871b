/** One page of the documentation as HTML: the text, the list of all pages, and links that work where the page is served. */
import { posix } from 'node:path';
import createMarkdown, { type MarkdownIt, type Token } from 'markdown-it';

export interface Page {
  /** Below docs/, such as `README.md`. */
  readonly path: string;
  readonly markdown: string;
  readonly title: string;
}

/** The folders of docs/ in the order in which a reader needs them. A page at the top stands first. */
const SECTIONS: Readonly<Record<string, string>> = {
  '.': 'Tally',
  start: 'Start',
  guides: 'Guides',
  operate: 'Operate',
  reference: 'Reference',
};
const NAMES = Object.keys(SECTIONS);

/** Returns the text of the first heading. */
export function titleOf(markdown: string): string {
  return /^# (.+)$/m.exec(markdown)?.[1] ?? 'Tally';
}

/** Returns the anchor of a heading, as GitHub makes it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** Renders the page. Links lead to served pages and files only; the text of any other one stays. */
export function renderPage(page: Page, pages: readonly Page[], files: ReadonlyMap<string, unknown>): string {
  const folder = posix.dirname(page.path);
  const root = folder === '.' ? '' : '../'.repeat(folder.split('/').length);
  const isServed = (path: string): boolean => files.has(path) || pages.some((each) => each.path === path);
  const { text, anchors } = withoutMarks(page.markdown);
  const body = markdownFor((href) => servedLink(href, folder, isServed), anchors).render(text);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${escaped(page.title)} – Tally</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}style.css">
</head>
<body>
<a class="pages" href="#pages">All pages</a>
<main>
${body}</main>
<nav id="pages" aria-label="Pages">
${navigation(page, pages, root)}
</nav>
</body>
</html>
`;
}

/** The pages of each section; those of the section that is shown are open. */
function navigation(current: Page, pages: readonly Page[], root: string): string {
  const bySection = Map.groupBy(pages, ({ path }) => posix.dirname(path));
  const sections = [...bySection].toSorted(([a], [b]) => NAMES.indexOf(a) - NAMES.indexOf(b));
  return sections
    .map(([section, its]) => {
      const links = its.map(
        ({ path, title }) =>
          `<li><a href="${root}${path.replace(/\.md$/, '.html')}"${path === current.path ? ' aria-current="page"' : ''}>${escaped(title)}</a></li>`,
      );
      return `<details${section === posix.dirname(current.path) ? ' open' : ''}><summary>${SECTIONS[section] ?? section}</summary><ul>${links.join('')}</ul></details>`;
    })
    .join('\n');
}

/** Returns the link as it works where the page is served; undefined if its target is not served. */
function servedLink(href: string, folder: string, isServed: (path: string) => boolean): string | undefined {
  if (/^(#|https?:)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  if (!isServed(posix.normalize(posix.join(folder, path)))) return undefined;
  return path.replace(/\.md$/, '.html') + (anchor === undefined ? '' : `#${anchor}`);
}

/** The renderer, with anchors at headings and with tables that scroll by themselves. HTML of a page is shown as text. */
function markdownFor(linkOf: (href: string) => string | undefined, anchors: ReadonlyMap<string, string>): MarkdownIt {
  const markdown = createMarkdown({ html: false });
  markdown.core.ruler.push('headings and links', ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      const text = tokens[index + 1]?.content ?? '';
      if (token.type === 'heading_open') token.attrSet('id', anchors.get(text) ?? anchorOf(text));
      keepServedLinks(token.children ?? [], linkOf);
    }
  });
  markdown.renderer.rules['table_open'] = () => '<div class="table"><table>\n';
  markdown.renderer.rules['table_close'] = () => '</table></div>\n';
  return markdown;
}

/** Changes each link to where it leads as served. One that leads nowhere becomes plain text. */
function keepServedLinks(tokens: readonly Token[], linkOf: (href: string) => string | undefined): void {
  // links do not nest
  let href: string | undefined;
  for (const token of tokens) {
    if (token.type === 'link_open') {
      href = linkOf(String(token.attrGet('href') ?? ''));
      token.attrs = href === undefined ? [] : [['href', href]];
    }
    if (token.type.startsWith('link_') && href === undefined) token.tag = 'span';
  }
}

/** The page without its comments, which are for maintainers, and without the anchors that stand before headings, which it returns by heading. */
function withoutMarks(markdown: string): { readonly text: string; readonly anchors: ReadonlyMap<string, string> } {
  const anchors = new Map<string, string>();
  const text = markdown
    .replaceAll(/^<!--.*?-->\n/gms, '')
    .replaceAll(/^<a id="([\w-]+)"><\/a>\n\n(#+) (.+)$/gm, (_, id: string, level: string, heading: string) => {
      anchors.set(heading, id);
      return `${level} ${heading}`;
    });
  return { text, anchors };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
