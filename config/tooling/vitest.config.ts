import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    // tests that wait minutes for leases are a separate command: npm run test:long
    include: [process.env['TALLY_TEST_LONG'] === '1' ? 'test/**/*.long.ts' : 'test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // hundreds of daemons are started: what Node compiled for the first is taken by the others
    env: { NODE_COMPILE_CACHE: new URL('../../node_modules/.cache/tally-test-compile', import.meta.url).pathname },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // one more than two cores: files that run daemons wait for real time-outs, leases and settles most of theirs
    maxWorkers: 3,
    // real servers, containers and kills on a shared machine: what fails twice is broken, and a retry is shown
    retry: process.env['CI'] === 'true' ? 1 : 0,
  },
});
