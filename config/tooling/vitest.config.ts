/** Three lanes, each with its own command (npm run test:unit …); `npm test` runs all of them at once. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** They need no server either, but long histories of their subject take seconds of CPU; `reader-matrix` has SQLite's files. */
const slow = [
  'apply',
  'beside-giants',
  'foreign-writer',
  'ordering',
  'random-reindexes',
  'worker-matrix',
  'gap-years',
  'control-plane-faults',
  'crash',
  'faults',
  'held-deletes',
  'memory',
  'reader-matrix',
  'true-status',
  'waiting',
  'wrong-clocks',
];
/** Decisions on fakes: no server and no other process. The registry's tests are of HTTP, with a listener of this process. */
const unitIn = (folders: string): string => `test/${folders}/!(${['*-real', ...slow].join('|')}).test.ts`;
// folders below cli, connect and store have the tests of adapters, and of files
const unit = [
  unitIn('{base,events,identity,indexer,observing,ordering,panel,records,repair,search,settings}/**'),
  unitIn('{cli,connect,store}'),
  'test/aws/*.rules.test.ts',
  'test/config*.test.ts',
];
/** The program as a process, and how it is deployed. */
const flow = ['test/{deploy,flow}/**/*.test.ts'];
// every file that is in no other lane, so that no file is left out
const integration = ['test/**/*.test.ts'];

const root = new URL('../..', import.meta.url).pathname;

/**
 * Files that take half a minute or more, the longest first, but that those with a dozen daemons at a time (the fault matrix, the
 * re-index faults, kill, outage) do not all begin at once. They begin before all others, whatever their lane: none of them is
 * still alone at work when all others have ended, and those that wait for real time-outs run beside those that need a core.
 */
const longestFirst = [
  'test/repair/gap-years.test.ts',
  'test/deploy/deploy.test.ts',
  'test/flow/fault-matrix.test.ts',
  'test/serve/openapi.test.ts',
  'test/connect/aws/iam-policy.test.ts',
  'test/flow/kill.test.ts',
  'test/flow/gaps.test.ts',
  'test/flow/outage.test.ts',
  'test/store/opensearch/contract.test.ts',
  'test/flow/panel-pages.test.ts',
  'test/docs/commands.test.ts',
  'test/flow/flood.test.ts',
  'test/flow/sources-agreement.test.ts',
  'test/flow/workers.test.ts',
  'test/flow/panel-search.test.ts',
  'test/clients/python.test.ts',
  'test/flow/bad-input.test.ts',
  'test/flow/connections-story.test.ts',
  'test/flow/browser-login.test.ts',
  'test/flow/panel-tour.test.ts',
  'test/flow/program.test.ts',
  'test/indexer/worker-matrix.test.ts',
].map((file) => root + file);
for (const file of longestFirst)
  if (!existsSync(file)) throw new Error(`longestFirst names ${file}, which does not exist: remove it there`);

class LongestFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = longestFirst.indexOf(moduleId);
      return place === -1 ? longestFirst.length : place;
    };
    return (await super.sort(specs)).sort((a, b) => placeOf(a) - placeOf(b));
  }
}

const common = {
  root,
  // hundreds of daemons are started: the later ones use what Node compiled for the first
  env: { NODE_COMPILE_CACHE: new URL('../../node_modules/.cache/tally-test-compile', import.meta.url).pathname },
  // no test asserts a time: a test that takes this long hangs
  testTimeout: 600_000,
  hookTimeout: 600_000,
  teardownTimeout: 600_000,
  // nor does what is polled for have to come within vitest's one second; then the message still says what was waited for
  expect: { poll: { timeout: 300_000 } },
  // four more than two cores: files that run daemons wait for real time-outs, leases and settles most of theirs, and with five
  // a sixth of the time of the cores was left; the unit lane by itself (npm run test:unit) waits for nothing and has two, since each
  // further process loads all modules again
  maxWorkers: 6,
};

/** Files share the processes that run them: to load the modules again for each would take a second and a half of CPU a file. */
const shared = { isolate: false, setupFiles: ['test/support/servers/end-daemons.ts'] };
const lanes = [
  { name: 'unit', include: unit, isolate: false },
  { name: 'integration', include: integration, exclude: [...unit, ...flow], ...shared },
  { name: 'flow', include: flow, ...shared },
];
const BREADTH = 'test/support/breadth.ts';

/** Whether a file asks, itself or by what it imports of the tests, for how much is to be played. */
function playsPart(path: string, seen = new Set<string>()): boolean {
  if (path === BREADTH) return true;
  if (seen.has(path) || !path.startsWith('test/') || !existsSync(root + path)) return false;
  seen.add(path);
  const imports = readFileSync(root + path, 'utf8').matchAll(/from '(\.[^']+)'/g);
  return [...imports].some(([, from = '']) => playsPart(join(dirname(path), from), seen));
}

// tests that wait minutes for leases are a separate command: npm run test:long; it also plays whole what plays a part every day
const whole = (): readonly string[] => globSync('test/**/*.test.ts', { cwd: root }).filter((path) => playsPart(path));
const long = () => [{ name: 'long', include: ['test/**/*.long.ts', ...whole()], setupFiles: shared.setupFiles }];

/** What a mutation run tests each mutant with (vitest.mutants.ts). */
export const MUTANTS_TESTS = {
  include: [
    unitIn('{base,connect,events,identity,indexer,ordering,records,repair,search,store}'),
    // what no other test notices
    'test/repair/beside-giants.test.ts',
    'test/aws/*.rules.test.ts',
  ],
  testTimeout: common.testTimeout,
  root,
};

export default defineConfig({
  test: {
    ...common,
    sequence: { sequencer: LongestFirst },
    // once for all lanes
    globalSetup: ['test/support/global-setup.ts'],
    projects: (process.env['TALLY_TEST_LONG'] === '1' ? long() : lanes).map((lane) => ({ test: { ...common, ...lane } })),
  },
});
