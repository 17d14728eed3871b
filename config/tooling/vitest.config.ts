import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 120_000,
    // two cores: one file of real servers beside one of pure code
    maxWorkers: 2,
    // real servers, containers and kills on a shared machine: what fails twice is broken, and a retry is shown
    retry: process.env['CI'] === 'true' ? 1 : 0,
  },
});
