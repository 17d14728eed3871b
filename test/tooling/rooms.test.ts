/**
 * The rooms of src: what each may import, how many lines it may have, and with which file it opens. docs/internals/README.md
 * describes them. Lint refuses what a single file must not import; this test draws the graph of the whole tree, so that no arrow
 * points up and no circle forms.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';

/** One import, as it is written, types included: paths from the repository's root. */
interface Import {
  readonly from: string;
  readonly to: string;
}

/** The static and dynamic imports of relative paths that one source file holds. */
function importsOf(file: string, source: string): readonly Import[] {
  const paths = source.matchAll(/(?:\bfrom|\bimport\(|^import)\s*'(\.[^']+)'/gm);
  return [...paths].map(([, path = '']) => ({ from: file, to: normalize(join(dirname(file), path)) }));
}

interface Room {
  /** What it imports besides the rooms of {@link GROUND}. */
  readonly imports: readonly string[];
  /** The most lines, with room for one operation or one rule. docs/internals/recipes.md says what to do in a full room. */
  readonly lines: number;
  /** The file with which a newcomer begins, from src. */
  readonly first: string;
}

/** Rooms that are pure as a whole: no clock, no I/O, nothing that is not pure. Each imports only those before it. */
const PURE = ['base', 'records', 'events', 'ordering'] as const;
/** What every room may import: what is pure, and what a process is made of. */
const GROUND = [...PURE, 'process'] as const;
/** What every room above the world may import. */
const WORLD = ['store', 'aws', 'observing'] as const;

/** Each imports only rooms before it. */
const rooms: Readonly<Record<string, Room>> = {
  base: { imports: [], lines: 1_420, first: 'base/fault.ts' },
  // a bucket's connection in AWS is a part of its record, and no record of its own
  records: { imports: ['base'], lines: 1_980, first: 'records/bucket.ts' },
  events: { imports: ['base', 'records'], lines: 1_215, first: 'events/envelope.ts' },
  ordering: { imports: ['base', 'records', 'events'], lines: 940, first: 'ordering/hint.ts' },
  process: { imports: ['base', 'records', 'events', 'ordering'], lines: 720, first: 'process/telemetry.ts' },
  contract: { imports: [...PURE], lines: 3_500, first: 'registry/contract/contract.ts' },
  store: { imports: [...GROUND], lines: 5_350, first: 'store/store.ts' },
  aws: { imports: [...GROUND], lines: 2_730, first: 'aws/storage.ts' },
  observing: { imports: [...GROUND, 'store', 'aws'], lines: 2_860, first: 'observing/observer.ts' },
  indexer: { imports: [...GROUND, ...WORLD], lines: 2_230, first: 'indexer/data-path.ts' },
  repair: { imports: [...GROUND, ...WORLD, 'contract'], lines: 5_080, first: 'repair/close-gaps.ts' },
  connect: { imports: [...GROUND, ...WORLD, 'contract'], lines: 5_240, first: 'connect/loop.ts' },
  identity: { imports: [...GROUND, ...WORLD, 'contract'], lines: 3_470, first: 'identity/logins.ts' },
  search: { imports: [...GROUND, ...WORLD, 'contract'], lines: 1_780, first: 'search/parse.rules.ts' },
  registry: {
    imports: [...GROUND, ...WORLD, 'contract', 'repair', 'connect', 'identity', 'search'],
    lines: 2_670,
    first: 'registry/operations/operations.ts',
  },
  settings: { imports: [...GROUND], lines: 920, first: 'settings/settings.ts' },
  demo: { imports: [...GROUND, ...WORLD, 'connect', 'contract', 'registry', 'settings'], lines: 680, first: 'demo/server.ts' },
  panel: { imports: [...PURE, 'contract'], lines: 4_980, first: 'panel/browser/shell.tsx' },
  cli: { imports: [...GROUND, 'contract', 'settings'], lines: 3_160, first: 'cli/run-cli.ts' },
  serve: {
    imports: [
      ...GROUND,
      ...WORLD,
      'indexer',
      'repair',
      'connect',
      'identity',
      'search',
      'contract',
      'registry',
      'settings',
      'demo',
      'panel',
    ],
    lines: 1_270,
    first: 'serve.ts',
  },
};

const PURE_ROOMS: ReadonlySet<string> = new Set([...PURE, 'contract']);
/** Besides the rooms that they name, they import what is pure anywhere: the contract is made of it. */
const TAKE_RULES: ReadonlySet<string> = new Set(['contract', 'panel', 'cli', 'settings']);
/** Commands that run without a registry, and the one that serves its tools by itself. */
const EXCEPTIONS: ReadonlySet<string> = new Set(['src/cli/cli.ts → src/connect/setup.ts', 'src/cli/setup.ts → src/connect/setup.ts']);

/** The folder below src. What lies at its top is the edge: main.ts imports everything, and serve.ts belongs to serve/. The contract is a room by itself. */
function roomOf(file: string): string {
  const [, room = '', ...rest] = file.split('/');
  if (file.startsWith('src/registry/contract/')) return 'contract';
  if (rest.length > 0) return room;
  return file === 'src/serve.ts' ? 'serve' : 'main';
}

const isRule = (file: string): boolean => file.endsWith('.rules.ts');
const isPure = (file: string): boolean => isRule(file) || PURE_ROOMS.has(roomOf(file));

/** What is pure imports what is pure. The contract is made of rules, and not the other way round. */
function isPermitted({ from, to }: Import): boolean {
  const [room, other] = [roomOf(from), roomOf(to)];
  if (isPure(from) && !isPure(to)) return false;
  if (isRule(from) && other === 'contract') return false;
  if (room === 'main' || room === other) return true;
  if (TAKE_RULES.has(room) && isRule(to)) return true;
  return rooms[room]?.imports.includes(other) === true || EXCEPTIONS.has(shown({ from, to }));
}

const shown = ({ from, to }: Import): string => `${from} → ${to}`;
const wrong = (imports: readonly Import[]): readonly string[] => imports.filter((each) => !isPermitted(each)).map(shown);

const imports = globSync('src/**/*.{ts,tsx}')
  .flatMap((file) => importsOf(file, readFileSync(file, 'utf8')))
  .filter(({ to }) => to.startsWith('src/'));
const planted = (file: string, path: string): readonly Import[] => [...imports, ...importsOf(file, `import { x } from '${path}';\n`)];
const files = globSync('src/**/*.{ts,tsx,js}');

/** The lines of the room's files. */
function linesOf(room: string): number {
  const own = files.filter((file) => roomOf(file) === room);
  return own.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0);
}

describe('the rooms of src', () => {
  test('are all that is there', () => {
    expect(imports.length).toBeGreaterThan(1_000);
    expect([...new Set(files.map(roomOf))].filter((room) => room !== 'main').toSorted()).toEqual(Object.keys(rooms).toSorted());
  });

  test('import what they may, and nothing that is not pure where they are', () => {
    expect(wrong(imports)).toEqual([]);
  });

  // what is permitted closes no circle then: rules, which some rooms take from below them too, import nothing but what is pure
  test('are listed in such an order that each imports only those before it', () => {
    const names = Object.keys(rooms);
    expect(Object.entries(rooms).filter(([name, room]) => room.imports.some((each) => names.indexOf(each) >= names.indexOf(name)))).toEqual(
      [],
    );
  });

  test('need each of the exceptions', () => {
    expect([...EXCEPTIONS].filter((each) => !imports.some((one) => shown(one) === each))).toEqual([]);
  });

  test.each(Object.entries(rooms))('%s is not longer than its budget', (room, { lines }) => {
    const toDo = 'remove something else from it, or raise its number in test/tooling/rooms.test.ts in the same commit and say why';
    expect(linesOf(room), `${room} is full: ${toDo} (docs/internals/recipes.md, “A full room”)`).toBeLessThanOrEqual(lines);
  });

  test.each(Object.entries(rooms))('%s opens with a file that says what the room does', (_room, { first }) => {
    const [, ...lines] = readFileSync(`src/${first}`, 'utf8').split('\n');
    const commentLines = lines.findIndex((line) => !line.startsWith(' *'));
    expect(commentLines).toBeGreaterThanOrEqual(5);
    const map = readFileSync('docs/internals/README.md', 'utf8');
    expect(map).toContain(`\`${first}\``);
  });
});

test.each([
  // of one subject by another
  ['src/indexer/data-path.ts', '../repair/close-gaps.ts'],
  ['src/repair/close-gaps.ts', '../identity/logins.ts'],
  ['src/identity/logins.ts', '../connect/loop.ts'],
  // upwards
  ['src/observing/observer.ts', '../indexer/data-path.ts'],
  ['src/store/stored.ts', '../observing/observer.ts'],
  ['src/repair/close-gaps.ts', '../registry/operations/operations.ts'],
  ['src/indexer/data-path.ts', '../registry/contract/jobs.ts'],
  ['src/events/record.ts', '../ordering/hint.ts'],
  // of what is not pure by what is
  ['src/repair/decide.rules.ts', './close-gaps.ts'],
  ['src/records/bucket.ts', '../process/clock.ts'],
  ['src/repair/decide.rules.ts', '../registry/contract/jobs.ts'],
  ['src/registry/contract/jobs.ts', '../../repair/close-gaps.ts'],
  // of more than the contract by the panel or a command
  ['src/panel/browser/api.ts', '../../registry/server.ts'],
  ['src/cli/jobs.ts', '../registry/operations/operations.ts'],
  // by a room that is not known
  ['src/elsewhere/x.ts', '../store/stored.ts'],
])('an import that is planted in %s, of %s, is found', (file, path) => {
  expect(wrong(planted(file, path))).toEqual([shown({ from: file, to: normalize(join(dirname(file), path)) })]);
});
