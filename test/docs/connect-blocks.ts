/** docs/guides/connect.md in its parts: the blocks of each section, and the documents in them. The page is the one place of the input transformer. */
import { readFileSync } from 'node:fs';

export interface PageBlock {
  /** The nearest heading above it. */
  readonly heading: string;
  /** What stands behind the opening fence. */
  readonly language: string;
  readonly text: string;
}

const PAGE = new URL('../../docs/guides/connect.md', import.meta.url);
const HERE_DOCUMENT = /<<('?)JSON\1\n([\s\S]*?)\nJSON$/gm;

/** Every fenced block of the page, in its order. */
export function pageBlocks(): readonly PageBlock[] {
  const blocks: PageBlock[] = [];
  let heading = '';
  let open: { readonly language: string; readonly lines: string[] } | undefined;
  for (const line of readFileSync(PAGE, 'utf8').split('\n')) {
    if (open !== undefined && line === '```') {
      blocks.push({ heading, language: open.language, text: open.lines.join('\n') });
      open = undefined;
    } else if (open !== undefined) open.lines.push(line);
    else if (line.startsWith('```')) open = { language: line.slice(3), lines: [] };
    else heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading;
  }
  return blocks;
}

/** The shell blocks of one section. Throws when the page has no such section, or the section none. */
export function shellBlocks(heading: string): readonly string[] {
  const blocks = pageBlocks().filter((block) => block.heading === heading && block.language === 'sh');
  if (blocks.length === 0) throw new Error(`docs/guides/connect.md has no shell block under “${heading}”`);
  return blocks.map(({ text }) => text);
}

/** The JSON documents that a shell block writes, with every variable replaced by `x` where the shell would replace it. */
export function jsonDocuments(shellText: string): readonly string[] {
  return [...shellText.matchAll(HERE_DOCUMENT)].map(([, quote, text = '']) =>
    quote === '' ? text.replaceAll(/\$(?:\{\w+\}|\w+)/g, 'x') : text,
  );
}

interface InputTransformer {
  readonly InputPathsMap: Readonly<Record<string, string>>;
  readonly InputTemplate: string;
}

/** The input transformer that the page gives to the rule of the routed source. */
export function pageTransformer(): InputTransformer {
  const [document] = shellBlocks('Steps 6 to 8: set the target with its input transformer').flatMap(jsonDocuments);
  if (document === undefined) throw new Error('docs/guides/connect.md writes no input transformer');
  return JSON.parse(document) as InputTransformer;
}
