/** What a mutation run (npm run test:mutants) tests each mutant of the domain and of ingest with: the unit tests of both. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/domain/**/*.test.ts', 'test/pipeline/ingest/*.test.ts'],
    // the mutated copy of the project is in node_modules/.cache, where vitest finds no tests by default
    exclude: [],
  },
});
