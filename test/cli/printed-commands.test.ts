/**
 * Every command of Tally that a text of the program or a page names can be typed: the real command line takes it. A command
 * that reaches the control plane, a registry or a file has been understood, and ends there.
 */
import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createCliWorld } from './world.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

/** Words that stand for what a reader fills in, where the command line demands a form. */
const FILLED: Readonly<Record<string, string>> = {
  N: '5',
  ARN: 'arn:aws:sns:eu-west-1:123456789012:changes',
  URL: 'http://127.0.0.1:8080',
  'https://HOST': 'https://catalog.example.com',
  SOURCE: 'eventbridge',
  $SOURCE: 'eventbridge',
  $TOPIC_ARN: 'arn:aws:sns:eu-west-1:123456789012:changes',
  MODE: 'tags',
};

/** The same for what follows an option. */
const FILLED_AFTER: Readonly<Record<string, string>> = {
  '--bucket-account': '123456789012',
  '--region': 'eu-west-1',
};

/** The words of a line as a shell would see them, up to the next command or redirection. */
function wordsOf(line: string): readonly string[] {
  // what stands in brackets may be left out
  const words = [...line.replaceAll(/\[[^\]]*\]/g, '').matchAll(/'([^']*)'|"([^"]*)"|([^\s'"]+)/g)].map(
    ([, single, double, plain]) => single ?? double ?? plain ?? '',
  );
  const end = words.findIndex((word) => /^(?:\||\|\||&&|>|>>|;|#|2>&1|\\)$/.test(word));
  const own = words.slice(0, end === -1 ? undefined : end);
  return own.map((word, index) => FILLED_AFTER[own[index - 1] ?? ''] ?? FILLED[word] ?? word.replace(/[;.,:)]+$/, ''));
}

/** The lines of code without comments. */
function codeOf(path: string): string {
  return read(path).replaceAll(/^\s*(?:\/\*\*?|\*|\/\/).*$/gm, '');
}

/** What stands for a name in a template. */
const withNames = (text: string): string => text.replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, 'photos');

/** The command of a call of `shellWords`: literal words as they are, names as `photos`. */
function commandOfCall(words: string): string {
  return words
    .replaceAll(/\.\.\.\w+/g, '')
    .split(',')
    .map((word) => /^\s*'([^']*)'\s*$/.exec(word)?.[1] ?? (word.trim() === '' ? '' : 'photos'))
    .join(' ');
}

function inSource(path: string): readonly string[] {
  const code = codeOf(path);
  const calls = [...code.matchAll(/shellWords\('tally', ((?:[^()]|\([^()]*\))*)\)/g)];
  const quoted = [...code.matchAll(/\\?`tally ((?:[^`\\$]|\$\{[^}]*\})+)\\?`/g), ...code.matchAll(/'tally ([^'\n]+)'/g)];
  return [
    ...calls.map(([, words = '']) => commandOfCall(words)),
    // a template with `name` makes the examples of several commands, which are read from their help
    ...quoted.flatMap(([, command = '']) => (/^\$|\$\{name\}/.test(command) ? [] : withNames(command))),
  ];
}

/** Inline code, and the lines of blocks for a shell with their continuations. */
function inPage(path: string): readonly string[] {
  const text = read(path).replaceAll(/\\\n\s*/g, ' ');
  const inline = [...text.matchAll(/`(?:npm run -s )?tally (?:-- )?([^`\n]+)`/g)];
  const lines = [
    ...text.matchAll(/^\s*(?:# {2,})?(?:[A-Z_]+=\S+ )*(?:npm run -s |docker exec \S+ |docker run .*? )?tally (?:-- )?([a-z][^\n]*)$/gm),
  ];
  return [...inline, ...lines].map(([, command = '']) => command);
}

/** `bucket add|remove` and `bucket …` stand for several. */
const isOne = (command: string): boolean => !/[…]|\w\|\w/.test(command) && /^[a-z]/.test(command);

const sources = globSync('src/**/*.ts', { cwd: ROOT });
const pages = globSync(['README.md', 'docs/**/*.md', 'config/**/*.{yaml,md}', 'Dockerfile', 'compose.yaml'], { cwd: ROOT });

/** Which files name a command. */
const commands = new Map<string, string>();
const add = (path: string, found: readonly string[]): void => {
  for (const command of found) if (isOne(command)) commands.set(command.replaceAll(/ +/g, ' ').trim(), path);
};
for (const path of pages) add(path, inPage(path));
for (const path of sources) add(path, inSource(path));
add('its help', await inHelp());

/** The examples in the help of every command. */
async function inHelp(...path: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await createCliWorld().run(...path, '--help');
  const [, examples = ''] = /\nExamples?:\n([^]*)$/.exec(stdout) ?? [];
  const [, below = ''] = /\nCommands:\n([^]*?)(?:\n\n|$)/.exec(stdout) ?? [];
  const names = [...below.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help');
  const more = await Promise.all(names.map((name) => inHelp(...path, name)));
  return [...[...examples.matchAll(/\btally ([a-z].*)$/gm)].map(([, command = '']) => command), ...more.flat()];
}

it('are found where they are known to be', () => {
  const named = [...commands.keys()];
  for (const command of [
    'doctor NAME',
    'bucket add photos',
    'gaps --bucket photos',
    'admin users disable 0aB1cD2eF3gH4iJ5kL6mN7',
    'serve --embedded',
  ]) {
    expect(named).toContain(command);
  }
  expect(commands.size).toBeGreaterThan(100);
});

/** A page, and a description for one, may name a command without what it is about. */
const isName = (path: string, words: readonly string[]): boolean =>
  !/^src\/(?!api|settings)/.test(path) && path !== 'its help' && words.every((word) => /^[a-z][a-z-]*$/.test(word));

it.each([...commands])('tally %s (%s)', async (command, path) => {
  const reached = new Error('reached');
  const reject = () => Promise.reject(reached);
  const world = createCliWorld({
    openControl: reject,
    openClient: reject,
    openSetup: reject,
    confirm: () => reject(),
    readFile: () => ({ text: 'secret', mode: 0o600 }),
    readText: () => 'photos\n',
  });
  const words = wordsOf(command);
  const { exitCode, stderr } = await world.run(...words);
  if (exitCode === 64 && isName(path, words))
    // an alias is behind the name
    expect((await world.run(...words, '--help')).stdout.replace(/^(Usage: .*?)\|\w+/, '$1')).toContain(`Usage: tally ${words.join(' ')} `);
  else expect({ exitCode, stderr }).not.toMatchObject({ exitCode: 64 });
});

it('are never sent to the package of npm that has the bare name', () => {
  const bare = /npx (?:-\S+ )*tally/;
  expect([...pages, ...sources].filter((path) => bare.test(read(path)))).toEqual([]);
});

it('stand in backticks in every sentence of the API, so that programs that act for people are given none', () => {
  const names =
    'serve|config|bucket|doctor|iam-policy|queue|search|du|explain|gaps|dead-letters|reindex|drift|jobs|keys|admin|state|login|logout|whoami';
  const bare = sources
    .filter((path) => !/^src\/(?:panel|cli|app)\//.test(path))
    .flatMap((path) =>
      [...codeOf(path).matchAll(new RegExp(String.raw`.*(?<!['"\x60]|&& |[A-Z_]+=\S+ )\btally (?:${names})\b.*`, 'g'))].map(
        ([line]) => `${path}: ${line.trim()}`,
      ),
    );
  expect(bare).toEqual([]);
});
