/**
 * `npm run docs:cast`: docs/pictures/first-minute.svg, an animation of the commands of README.md, “Try it”, and of what they print,
 * run by a registry in embedded mode. With reduced motion it is the last picture alone.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT, shellBlocksOf, textOf } from '../docs/pages.ts';
import { startEmbeddedRegistry } from './servers/embedded-registry.ts';

const FILE = `${ROOT}docs/pictures/first-minute.svg`;
const COLUMNS = 104;
/** More of one command's output says no more. */
const LINES_OF_OUTPUT = 8;
const LINE_PX = 20;
const COLUMN_PX = 8.43;
const MARGIN_PX = 20;
/** How long a command stands before its output comes, and its output before the next command. */
const READ_S = 2;
/** How long all of it stands before it begins again. */
const REST_S = 8;

interface Line {
  readonly text: string;
  readonly kind: 'command' | 'output';
  readonly atS: number;
}

const registry = await startEmbeddedRegistry();
try {
  writeFileSync(FILE, pictureOf(await play()));
} finally {
  await registry.close();
}

async function play(): Promise<readonly Line[]> {
  const block = shellBlocksOf(textOf('README.md')).find((commands) => commands.some((command) => command.includes('explain')));
  if (block === undefined) throw new Error('README.md has no block with explain');
  const lines: Line[] = [];
  let atS = 0;
  for (const command of block) {
    if (command.startsWith('sleep')) {
      // the picture does not wait for a busy machine
      await delay(3_000);
      continue;
    }
    if (lines.length > 0) lines.push({ text: '', kind: 'output', atS });
    lines.push({ text: command, kind: 'command', atS });
    atS += READ_S;
    const output = outputOf(command);
    lines.push(...output.map((text): Line => ({ text, kind: 'output', atS })));
    atS += output.length === 0 ? 0 : READ_S;
  }
  return lines;
}

function outputOf(command: string): readonly string[] {
  const here = command.replace('http://127.0.0.1:4566', registry.embeddedUrl).replace('http://127.0.0.1:8080', registry.controlUrl);
  const env = { ...process.env, TALLY_REGISTRY_URL: registry.controlUrl };
  const printed = execFileSync('sh', ['-c', here], { cwd: ROOT, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const shown = printed.replaceAll(registry.embeddedUrl, 'http://127.0.0.1:4566').replaceAll(registry.controlUrl, 'http://127.0.0.1:8080');
  const lines = shown.trim() === '' ? [] : shown.trimEnd().split('\n').flatMap(wrapped);
  return lines.length <= LINES_OF_OUTPUT ? lines : [...lines.slice(0, LINES_OF_OUTPUT), '…'];
}

/** A line as a terminal breaks it. */
function wrapped(line: string): readonly string[] {
  if (line === '') return [''];
  return line.match(new RegExp(`.{1,${COLUMNS}}`, 'gu')) ?? [];
}

function pictureOf(lines: readonly Line[]): string {
  const lastS = (lines.at(-1)?.atS ?? 0) + REST_S;
  const moments = [...new Set(lines.map(({ atS }) => atS))];
  const width = Math.ceil(COLUMNS * COLUMN_PX + 2 * MARGIN_PX);
  const height = lines.length * LINE_PX + 2 * MARGIN_PX;
  const percent = (atS: number): string => `${((atS / lastS) * 100).toFixed(2)}%`;
  const rules = moments.map((atS, index) =>
    atS === 0
      ? ''
      : `@keyframes k${index}{0%,${percent(atS)}{opacity:0}${percent(atS + 0.05)},100%{opacity:1}}.t${index}{animation:k${index} ${lastS}s infinite}`,
  );
  const texts = lines.map(({ text, kind, atS }, index) => {
    const prompt = kind === 'command' ? '<tspan class="prompt">$ </tspan>' : '';
    const y = MARGIN_PX + (index + 0.75) * LINE_PX;
    return `<text x="${MARGIN_PX}" y="${y}" class="${kind} t${moments.indexOf(atS)}" xml:space="preserve">${prompt}${escaped(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">The first minute: an object is put, found by a search, explained, compared and deleted, and no longer found.</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#cbd2d9}
.command{fill:#fff;font-weight:600}
.prompt{fill:#4cc38a}
@media (prefers-reduced-motion:no-preference){${rules.join('')}}
</style>
<rect width="${width}" height="${height}" rx="8" fill="#14191f"/>
${texts.join('\n')}
</svg>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
