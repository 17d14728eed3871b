/** The pages of the documentation: their text, their shell commands, their headings and their links. */
import { readdirSync, readFileSync } from 'node:fs';

export const ROOT = new URL('../..', import.meta.url).pathname;

/** The text of a file of the project, by its path from the project's folder. */
export function textOf(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8');
}

/** README.md and every page below docs/, by their paths from the project's folder. */
export function pages(): readonly string[] {
  const docs = readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' });
  return ['README.md', ...docs.filter((path) => path.endsWith('.md')).map((path) => `docs/${path}`)].toSorted();
}

/** A fenced block: its language and its lines. */
interface Fence {
  readonly language: string;
  readonly text: string;
}

const FENCE = /^```(\w*)\n(.*?)^```$/gms;

/** The fenced blocks of a page, in their order. */
export function fencesOf(markdown: string): readonly Fence[] {
  return [...markdown.matchAll(FENCE)].map(([, language = '', text = '']) => ({ language, text }));
}

/** The page without its fenced blocks. */
export function proseOf(markdown: string): string {
  return markdown.replaceAll(FENCE, '');
}

/** The shell commands of each `sh` block of a page: comments and blank lines left out, continued lines joined. */
export function shellBlocksOf(markdown: string): readonly (readonly string[])[] {
  return fencesOf(markdown)
    .filter(({ language }) => language === 'sh')
    .map(({ text }) =>
      text
        .replaceAll(/\\\n\s*/g, '')
        .split('\n')
        .map((line) => line.replace(/(^|\s)# .*$/, '').trim())
        .filter((line) => line !== ''),
    );
}

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The anchors of a page: of its headings, and those that stand before headings. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const prose = proseOf(markdown);
  const headings = [...prose.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) => anchorOf(title));
  return new Set([...headings, ...[...prose.matchAll(/^<a id="([\w-]+)"><\/a>$/gm)].map(([, id = '']) => id)]);
}

/** The targets of a page's links, without those that lead out of the project. */
export function linksOf(markdown: string): readonly string[] {
  const targets = [...proseOf(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}
