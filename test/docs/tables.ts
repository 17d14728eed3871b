/** Pages with a table that is written from the code, between two comments. Their other text is written by hand. */
import { parse } from 'yaml';
import { z } from 'zod';
import { seriesTable, type SeriesDefinition } from '../../src/process/telemetry.ts';
import { faults } from '../../src/base/fault.ts';
import { textOf } from './pages.ts';

/** docs/reference/metrics.md with the table of metrics as the code has it. */
export function metricsPage(): string {
  return withTable(textOf('docs/reference/metrics.md'), 'metrics', metricsMarkdown());
}

/** docs/operate/alerts.md with the alerts as Prometheus has them. */
export function alertsPage(): string {
  return withTable(textOf('docs/operate/alerts.md'), 'alerts', alertsMarkdown());
}

/** The page with this table between its two comments. */
export function withTable(page: string, name: string, table: string): string {
  const written = page.replace(
    new RegExp(`(<!-- table of ${name}[^>]*-->\\n).*?(<!-- end of table -->)`, 's'),
    (_, begin: string, end: string) => `${begin}${table}\n${end}`,
  );
  if (!written.includes(table)) throw new Error(`the page has no comments around its table of ${name}`);
  return written;
}

const alertsSchema = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          labels: z.object({ severity: z.string() }),
          annotations: z.object({ description: z.string() }),
        }),
      ),
    }),
  ),
});

const alerts = alertsSchema.parse(parse(textOf('config/monitoring/alerts.yaml'))).groups.flatMap(({ rules }) => rules);

/** The address of a page of the repository. */
const PAGE = /https:\/\/github\.com\/[\w-]+\/tally\/blob\/main\/docs\/([a-z/-]+\.md)(#[\w-]+)?/g;

/** A page of docs/, as docs/operate/ links it. */
function linkTo(_: string, page: string, anchor = ''): string {
  return `[more](${page.startsWith('operate/') ? page.slice('operate/'.length) : `../${page}`}${anchor})`;
}

/** A heading for each alert, since its runbook_url leads there, and its description. */
function alertsMarkdown(): string {
  const parts = alerts.map(
    ({ alert, labels: { severity }, annotations: { description } }) =>
      `### ${alert}\n\n*${severity}.* ${description.replaceAll(PAGE, linkTo)}\n`,
  );
  return `\n${parts.join('\n')}`;
}

/** The shipped alerts that ask for a metric. */
function alertsOf(metric: string): string {
  const asking = alerts.filter(({ expr }) => new RegExp(String.raw`\b${metric}(?:_bucket)?\b`).test(expr));
  return asking.map(({ alert }) => `[${alert}](../operate/alerts.md#${alert.toLowerCase()})`).join(', ') || '–';
}

/** Each metric with its type, labels, unit, meaning and alerts, as Markdown. */
function metricsMarkdown(): string {
  const rows = Object.entries<SeriesDefinition>(seriesTable).map(([name, { type, labels = {}, unit, help, knownForMs }]) => {
    const labelText = Object.entries(labels)
      .map(([label, values]) => `${label}${describeValues(values)}`)
      .join('; ');
    return `| \`${name}\` | ${type} | ${labelText === '' ? '–' : labelText} | ${unit} | ${help}${knownForMs === undefined ? '' : ' *Absent while not known.*'} | ${alertsOf(name)} |`;
  });
  return ['| series | type | labels | unit | meaning | alerts |', '|---|---|---|---|---|---|', ...rows].join('\n');
}

/** Fault codes are listed elsewhere, and too many for a cell. */
function describeValues(values: readonly string[]): string {
  if (values.length === 0) return '';
  const own = values.filter((value) => !(value in faults));
  return `: ${(own.length < values.length ? [...own, 'a fault code'] : own).join(', ')}`;
}
