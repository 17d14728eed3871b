/**
 * The fault matrix: each fault beside exact and inexact events of the same bucket and of another one, and a re-index of the other,
 * with the daemon killed in the middle. What fails alone waits alone, nothing is lost, and nothing healthy becomes a dead letter.
 */
import PQueue from 'p-queue';
import { beforeAll, describe, expect, test } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { runFaultRow, type FaultRow, type RowResult } from '../support/worlds/fault-row.ts';
import { faultRows } from '../support/worlds/fault-rows.ts';
import { noteNotRun } from '../support/not-run.ts';
import { opensearchUrl } from '../support/servers/found.ts';

/** More would mean that a fault costs a healthy message its receives. */
const RECEIVES_MAX = 7;
/** Rows wait most of their time, so more of them run than there are cores; twelve starved everything beside two busy loops. */
const ROWS_AT_ONCE = 6;
const TIMEOUT_MS = 1_200_000;

const { rows, notRun } = faultRows(opensearchUrl() !== undefined);
for (const name of notRun) noteNotRun(name, 'OpenSearch (TALLY_TEST_OPENSEARCH_URL)');
const chosen = rows.filter(({ isVariant }) => isLong || isVariant !== true);

describe('with a fault, and killed in its middle,', () => {
  const queue = new PQueue({ concurrency: ROWS_AT_ONCE });
  const results = new Map<FaultRow, Promise<RowResult>>();

  beforeAll(() => {
    for (const row of chosen) {
      const result = queue.add(() => runFaultRow(row));
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
});
