import { expect, it } from 'vitest';
import { ROOT } from '../support/docs-pages.ts';
import { operationsPage, tracesPage } from '../support/docs-tables.ts';

it.each([
  ['docs/operations.md', 'every metric', operationsPage],
  ['docs/traces.md', 'every variable of OpenTelemetry that is honoured', tracesPage],
])('%s has the row of %s (-u writes it)', async (path, _, page) => {
  await expect(page()).toMatchFileSnapshot(`${ROOT}${path}`);
});
