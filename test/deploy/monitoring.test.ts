/**
 * config/monitoring and config/scaling: every metric, label and value that an expression names exists in the metrics that a daemon
 * registers at its start, and promtool says whether the alerts fire when they should.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { createTelemetry } from '../../src/process/metrics-and-log.ts';
import { seriesTable, type SeriesDefinition } from '../../src/process/telemetry.ts';
import { canRun, findProgram, runProgram } from '../docs/programs.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { groupingLabelsIn, selectorsIn, seriesIn, type Matcher, type Series } from '../support/promql.ts';

const PROMTOOL = { name: 'promtool', variable: 'TALLY_TEST_PROMTOOL' } as const;
/** What lasts for days is looked at every ten minutes, as each evaluation of each rule takes its time: promtool has one interval a file. */
const ALERT_TESTS = ['alerts.test.yaml', 'alerts-of-days.test.yaml'];
const hasPromtool = canRun('the tests of the alerts', [PROMTOOL]);

const config = (name: string): string => readFileSync(new URL(`../../config/${name}`, import.meta.url), 'utf8');

const alertsSchema = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Tally[A-Z]\w+$/),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
          annotations: z.strictObject({ summary: z.string().min(10).max(120), description: z.string().min(60), runbook_url: z.url() }),
        }),
      ),
    }),
  ),
});

const panelSchema = z.object({
  id: z.int(),
  type: z.string(),
  title: z.string().min(2),
  gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
  targets: z.array(z.object({ datasource: z.object({ uid: z.literal('${datasource}') }), expr: z.string() })).optional(),
});
const dashboardSchema = z.object({
  schemaVersion: z.literal(42),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string(), definition: z.string().optional() })) }),
  panels: z.array(panelSchema),
});

const scaledObjectSchema = z.object({
  kind: z.literal('ScaledObject'),
  spec: z.object({
    triggers: z.array(z.object({ type: z.string(), metadata: z.record(z.string(), z.string()) })),
  }),
});

const alerts = alertsSchema.parse(parse(config('monitoring/alerts.yaml'))).groups.flatMap(({ rules }) => rules);
const dashboard = dashboardSchema.parse(JSON.parse(config('monitoring/dashboard.json')));
const scaledObjects = ['scaling/keda-sqs.yaml', 'scaling/keda-prometheus.yaml'].flatMap((name) =>
  parseAllDocuments(config(name)).flatMap((document) => scaledObjectSchema.safeParse(document.toJS()).data ?? []),
);
const triggers = scaledObjects.flatMap(({ spec }) => spec.triggers);

/** Each expression of the configuration, with where it is. */
const expressions: readonly (readonly [where: string, expression: string])[] = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets }) => (targets ?? []).map(({ expr }) => [`panel ${title}`, expr] as const)),
  ...triggers.flatMap(({ metadata }) => (metadata['query'] === undefined ? [] : [['KEDA trigger', metadata['query']] as const])),
  ...dashboard.templating.list.flatMap(({ name, definition }) => {
    const selector = /^label_values\((.*), \w+\)$/.exec(definition ?? '')?.[1];
    return selector === undefined ? [] : [[`variable ${name}`, selector] as const];
  }),
];

/** What Prometheus adds: the target's labels, and a series of its own for each target. */
const TARGET_LABELS = { job: 'tally', instance: 'tally-1:8081' };
const UP: Series = { metric: 'up', labels: {} };

/** What a series lacks of what is asked of it; a matcher with a variable of Grafana's takes any value. */
function complaints(expression: string, known: readonly Series[]): readonly string[] {
  const labelsOf = ({ labels }: Series): Readonly<Record<string, string>> => ({ ...labels, ...TARGET_LABELS });
  const read = selectorsIn(expression);
  const wrong = read.flatMap(({ metric, matchers }) => {
    const series = known.filter((each) => each.metric === metric).map(labelsOf);
    if (series.length === 0) return [`there is no metric ${metric}`];
    return matchers.flatMap((matcher) => matcherComplaints(metric, matcher, series));
  });
  const labels = new Set(
    read.flatMap(({ metric }) => known.filter((each) => each.metric === metric).flatMap((each) => Object.keys(labelsOf(each)))),
  );
  return [...wrong, ...groupingLabelsIn(expression).flatMap((label) => (labels.has(label) ? [] : [`grouped by ${label}, which none has`]))];
}

function matcherComplaints(metric: string, matcher: Matcher, series: readonly Readonly<Record<string, string>>[]): readonly string[] {
  const { label, operator, value } = matcher;
  if (value.startsWith('$')) return series.some((labels) => label in labels) ? [] : [`${metric} has no label ${label}`];
  const isPattern = operator.endsWith('~');
  // of alternatives each must exist: a pattern that matches by its other half hides a renamed value
  return (isPattern ? value.split('|') : [value]).flatMap((wanted) => {
    const isIt = (actual: string | undefined): boolean =>
      actual !== undefined && (isPattern ? new RegExp(`^(?:${wanted})$`).test(actual) : actual === wanted);
    return series.some((labels) => isIt(labels[label])) ? [] : [`${metric} has no ${label}="${wanted}"`];
  });
}

function allComplaints(known: readonly Series[]): readonly string[] {
  return expressions.flatMap(([where, expression]) => complaints(expression, known).map((complaint) => `${where}: ${complaint}`));
}

/** The metrics as registered, once everything was read. */
async function registered(): Promise<readonly Series[]> {
  const adapter = createTelemetry({ level: 'silent', clock: createFakeClock() });
  for (const [name, { knownForMs }] of Object.entries<SeriesDefinition>(seriesTable))
    if (knownForMs !== undefined) adapter.telemetry.setCounts(name as 'tally_jobs', []);
  return [...seriesIn(await adapter.metricsText()), UP];
}

describe('every expression of config/monitoring and config/scaling', () => {
  it('reads something', () => {
    for (const [where, expression] of expressions) expect([where, selectorsIn(expression).length]).not.toEqual([where, 0]);
    expect(expressions.length).toBeGreaterThan(60);
  });

  it('names metrics, labels and values that there are', async () => {
    expect(allComplaints(await registered())).toEqual([]);
  });

  it.each([
    ['rate(tally_record_total[5m])', 'there is no metric tally_record_total'],
    ['tally_records_total{outcome="rejectd"}', 'tally_records_total has no outcome="rejectd"'],
    ['tally_receiving{state=~"on|of"}', 'tally_receiving has no state="of"'],
    ['tally_receiving{state!="off"}', 'tally_receiving has no state="off"'],
    ['tally_records_total{result="$result"}', 'tally_records_total has no label result'],
    ['sum by (result, outcome) (tally_records_total)', 'grouped by result, which none has'],
  ])('would not pass as %s', async (expression, complaint) => {
    expect(complaints(expression, await registered())).toEqual([complaint]);
  });
});

describe('config/monitoring/alerts.yaml', () => {
  it('is tested alert by alert, each of which leads to its own heading', () => {
    const names = ALERT_TESTS.flatMap((file) => [...config(`monitoring/${file}`).matchAll(/alertname="(\w+)"/g)]).flatMap(
      ([, name]) => name ?? [],
    );
    expect([...new Set(names)].toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
    // that its page has the heading: docs/paths.test.ts
    for (const { alert, annotations } of alerts) expect(annotations.runbook_url.split('#')[1]).toBe(alert.toLowerCase());
  });

  it.skipIf(!hasPromtool)('fires when it must, alone, and not when it must not', async () => {
    const promtool = findProgram(PROMTOOL) ?? '';
    const folder = new URL('../../config/monitoring', import.meta.url).pathname;
    const ends = [
      await runProgram(promtool, ['check', 'rules', 'alerts.yaml'], { cwd: folder }),
      await runProgram(promtool, ['test', 'rules', ...ALERT_TESTS], { cwd: folder }),
    ];
    expect(ends.map(({ code, stdout, stderr }) => (code === 0 ? '' : stdout + stderr))).toEqual(['', '']);
  });
});

describe('config/monitoring/dashboard.json', () => {
  it('asks the data source that is chosen, and only for processes that are chosen', () => {
    expect(dashboard.templating.list.map(({ name, type }) => [name, type])).toEqual([
      ['datasource', 'datasource'],
      ['job', 'query'],
      ['instance', 'query'],
    ]);
    const unfiltered = dashboard.panels.flatMap(({ title, targets }) =>
      (targets ?? []).flatMap(({ expr }) =>
        selectorsIn(expr).flatMap(({ matchers }) => (matchers.some(({ value }) => value === '$job') ? [] : [title])),
      ),
    );
    expect(unfiltered).toEqual([]);
  });
});
