/** The tests of a mutation run (npm run test:mutants): the unit tests of what it changes, what is pure and the indexer. */
import { defineConfig } from 'vitest/config';
import { MUTANTS_TESTS } from './vitest.config.ts';

export default defineConfig({
  // the changed copy of the project is in node_modules/.cache, where vitest finds no tests unless it leaves nothing out
  test: { ...MUTANTS_TESTS, exclude: [] },
});
