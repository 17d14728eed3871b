import { expect, it } from 'vitest';
import { createMetrics } from '../../../src/adapters/telemetry/metrics.ts';
import { seriesTable } from '../../../src/adapters/telemetry/series.ts';
import { faults, type FaultCode } from '../../../src/domain/fault.ts';

const tables: Readonly<Record<string, { readonly type: string; readonly labels: Readonly<Record<string, readonly string[]>> }>> =
  seriesTable;

/** Name and labels of every sample of ours. */
async function series(metrics: ReturnType<typeof createMetrics>): Promise<readonly string[]> {
  const lines = (await metrics.registry.metrics()).split('\n');
  return lines.filter((line) => line.startsWith('tally_')).map((line) => line.slice(0, line.lastIndexOf(' ')));
}

it('has one series for each combination of label values, and no other', async () => {
  const all = await series(createMetrics());
  expect(new Set(all).size).toBe(all.length);
  for (const [name, { type, labels }] of Object.entries(tables)) {
    if (type === 'histogram') continue;
    const combinations = Object.values(labels).reduce((product, values) => product * values.length, 1);
    expect([name, all.filter((each) => each === name || each.startsWith(`${name}{`)).length]).toEqual([name, combinations]);
  }
});

it('makes no series of a value that the label’s set does not hold', async () => {
  const metrics = createMetrics();
  const before = await series(metrics);
  // what compiles is checked by types; this is what reaches the metrics at run time all the same
  const { count, set } = metrics as unknown as Record<'count' | 'set', (name: string, value: number, labels?: object) => void>;
  for (const [name, { labels }] of Object.entries(tables)) {
    // bucket names are not known beforehand: they come from stored records of connected buckets only
    const outside = Object.fromEntries(Object.keys(labels).map((label) => [label, label === 'bucket' ? 'photos' : 'from/outside']));
    if (Object.keys(labels).length === 0) continue;
    for (const change of [count, set]) {
      change(name, 1, outside);
      change(name, 1, {});
      change(name, 1);
    }
  }
  expect(await series(metrics)).toEqual(before);
});

it('changes a series that is there, rather than adding another', async () => {
  const metrics = createMetrics();
  const before = await series(metrics);
  metrics.set('tally_queue_messages', 3, { queue: 'bucket', state: 'visible' });
  metrics.set('tally_queue_messages', 4, { state: 'visible', queue: 'dead-letter' });
  metrics.count('tally_records_total', 1, { outcome: 'written', dialect: 'native' });
  expect(await series(metrics)).toHaveLength(before.length);
  expect(await metrics.registry.metrics()).toContain('tally_queue_messages{queue="bucket",state="visible"} 3\n');
});

it('shows a pause by whatever fault of a probe', async () => {
  const metrics = createMetrics();
  const shared = Object.entries(faults).flatMap(([code, { circuit }]) => (circuit === 'cluster' ? [code as FaultCode] : []));
  for (const fault of [...shared, 'internal.unexpected'] as const) {
    metrics.set('tally_paused', 1, { fault });
    expect(await metrics.registry.metrics()).toContain(`tally_paused{fault="${fault}"} 1\n`);
  }
});

it.each([Number.NaN, Number.POSITIVE_INFINITY])('does not throw at a duration of %d', async (value) => {
  const metrics = createMetrics();
  metrics.observe('tally_event_lag_seconds', value);
  expect(await metrics.registry.metrics()).toContain('tally_event_lag_seconds_count 0\n');
});
