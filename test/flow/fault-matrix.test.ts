/**
 * The fault matrix: each fault beside exact events and looks of the same bucket and of another one, and a re-index of the other,
 * with the daemon killed in the middle. What fails alone waits alone, nothing is lost, and nothing healthy becomes a dead letter. Times are told, not
 * judged, since they depend on the machine.
 */
import { writeFileSync } from 'node:fs';
import PQueue from 'p-queue';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { runFaultRow, type FaultRow, type RowResult } from '../support/worlds/fault-row.ts';
import { faultRows } from '../support/worlds/fault-rows.ts';
import { opensearchUrl } from '../support/servers/found.ts';

/** More would mean that a fault costs a healthy message its receives. */
const RECEIVES_MAX = 7;
/** Rows wait most of their time, so more of them run than there are cores; twelve starved everything beside two busy loops. */
const ROWS_AT_ONCE = Number(process.env['TALLY_TEST_MATRIX_ROWS_AT_ONCE'] ?? '6');
const TIMEOUT_MS = 1_200_000;

const only = process.env['TALLY_TEST_MATRIX_ONLY'];
const { rows, notRun } = faultRows(opensearchUrl() !== undefined);
const chosen = rows.filter(({ name, isVariant }) => (only === undefined ? isLong || isVariant !== true : new RegExp(only).test(name)));

describe('with a fault, and killed in its middle,', () => {
  const queue = new PQueue({ concurrency: ROWS_AT_ONCE });
  const results = new Map<FaultRow, Promise<RowResult>>();
  const told: RowResult[] = [];

  function tell(result: RowResult): RowResult {
    told.push(result);
    const file = process.env['TALLY_TEST_MATRIX_OUT'];
    if (file !== undefined) writeFileSync(file, `${JSON.stringify({ rows: told, notRun }, undefined, 2)}\n`);
    return result;
  }

  beforeAll(() => {
    for (const row of chosen) {
      const result = queue.add(() => runFaultRow(row)).then(tell);
      // its own test tells how it went
      result.catch(() => undefined);
      results.set(row, result);
    }
  });

  test.each(chosen)('what is not concerned is indexed, and in the end all is: $name', { timeout: TIMEOUT_MS }, async (row) => {
    const result = await results.get(row);
    expect(result).toMatchObject({ unserved: '', difference: '' });
    expect(result?.deadLetters).toBeLessThanOrEqual(row.lettersMax ?? 0);
    expect(result?.receivesMax).toBeLessThanOrEqual(RECEIVES_MAX);
  });

  afterAll(() => {
    console.log(tableOf(told));
  });
});

function tableOf(results: readonly RowResult[]): string {
  const head = [
    'fault',
    'index',
    'neighbour p50 / p99 ms',
    'receives',
    'dead letters',
    're-index of the neighbour ms',
    'healed after ms',
    'circuits that opened',
    'failed',
  ];
  const lines = results.map(
    ({ row, index, neighbourP50Ms, neighbourP99Ms, receivesMax, deadLetters, reindexMs, healMs, opened, unserved, difference }) =>
      [
        row,
        index,
        neighbourP99Ms === 0 ? '–' : `${neighbourP50Ms} / ${neighbourP99Ms}`,
        receivesMax,
        deadLetters,
        reindexMs ?? '–',
        healMs,
        opened.join(', ') || '–',
        unserved + difference,
      ].map(String),
  );
  return [head, ...lines, ...notRun.map((name) => [name, 'NOT RUN'])].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
