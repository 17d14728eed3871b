/** `npm run docs`: writes the pages, and the tables of pages, that are made from the code. */
import { writeFileSync } from 'node:fs';
import { apiPage } from './api-page.ts';
import { cliPage } from './cli-page.ts';
import { errorCodesPage } from './error-codes-page.ts';
import { pagesWithFacts, withFacts } from './facts.ts';
import { textOf } from './pages.ts';
import { daemonPolicy, permissionsPage } from './permissions.ts';
import { settingsPage } from './settings-page.ts';
import { terraformPermissions } from './terraform.ts';
import { alertsPage, metricsPage } from './tables.ts';

/** The pages, and a file that a page is about, by their paths in the repository. */
export const pages: Readonly<Record<string, () => string>> = {
  ...Object.fromEntries(pagesWithFacts.map((path) => [path, () => withFacts(path, textOf(path))])),
  'config/aws/daemon-policy.json': daemonPolicy,
  // a chart contains nothing from outside of its folder
  'config/helm/tally/files/alerts.yaml': () => textOf('config/monitoring/alerts.yaml'),
  'config/helm/tally/files/dashboard.json': () => textOf('config/monitoring/dashboard.json'),
  'config/terraform/permissions.tf': terraformPermissions,
  'docs/reference/api.md': apiPage,
  'docs/reference/permissions.md': permissionsPage,
  'docs/operate/alerts.md': alertsPage,
  'docs/reference/metrics.md': metricsPage,
  'docs/reference/cli.md': cliPage,
  'docs/reference/error-codes.md': errorCodesPage,
  'docs/reference/settings.md': settingsPage,
};

if (import.meta.main) {
  for (const [path, page] of Object.entries(pages)) writeFileSync(new URL(`../../${path}`, import.meta.url), page());
}
