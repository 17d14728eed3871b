/** Three lanes, each with its own command (npm run test:unit …); `npm test` runs all of them at once. */
import { defineConfig } from 'vitest/config';

/** They need no server either, but more than half a minute each. */
const slow = ['random-reindexes', 'worker-matrix', 'dead-bucket', 'gap-years'];
/** Decisions on fakes: no server and no other process; where HTTP is what is tested, a listener of this process. */
const unit = [`test/{api,cli,domain,http,panel,pipeline,settings}/**/!(${['*-real', ...slow].join('|')}).test.ts`, 'test/config*.test.ts'];
/** The program as a process, and how it is deployed. */
const flow = ['test/{deploy,flow}/**/*.test.ts'];
// every file that is in no other lane, so that no file is left out
const integration = ['test/**/*.test.ts'];

const common = {
  root: new URL('../..', import.meta.url).pathname,
  // hundreds of daemons are started: the later ones use what Node compiled for the first
  env: { NODE_COMPILE_CACHE: new URL('../../node_modules/.cache/tally-test-compile', import.meta.url).pathname },
  // no test asserts a time: a test that takes this long hangs
  testTimeout: 600_000,
  hookTimeout: 600_000,
  // two more than two cores: files that run daemons wait for real time-outs, leases and settles most of theirs
  maxWorkers: 4,
};

const lanes = [
  { name: 'unit', include: unit, isolate: false },
  { name: 'integration', include: integration, exclude: [...unit, ...flow] },
  { name: 'flow', include: flow },
];
// tests that wait minutes for leases are a separate command: npm run test:long
const long = [{ name: 'long', include: ['test/**/*.long.ts'] }];

export default defineConfig({
  test: {
    ...common,
    // once for all lanes
    globalSetup: ['test/support/global-setup.ts'],
    projects: (process.env['TALLY_TEST_LONG'] === '1' ? long : lanes).map((lane) => ({ test: { ...common, ...lane } })),
  },
});
