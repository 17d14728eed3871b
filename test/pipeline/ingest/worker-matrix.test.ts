/**
 * The fault matrix of several workers on a virtual clock: each fault beside exact events and looks that it does not concern,
 * with one worker, with three whose circuits differ, and with a restart of all workers every five minutes.
 */
import { describe, expect, it } from 'vitest';
import { portFaults, tags } from '../../support/worlds/port-faults.ts';
import { runMatrixRow, type MatrixForm } from '../../support/worlds/worker-matrix.ts';

const MINUTE_MS = 60_000;

const forms: readonly MatrixForm[] = [
  { name: 'with one worker', workers: 1, faultMs: 15 * MINUTE_MS, seenBy: 'all', laterMs: 0 },
  { name: 'with three workers, of which one sees it', workers: 3, faultMs: 15 * MINUTE_MS, seenBy: 'the first alone', laterMs: 0 },
  { name: 'with three workers that see it one after another', workers: 3, faultMs: 15 * MINUTE_MS, seenBy: 'all', laterMs: 2 * MINUTE_MS },
  {
    name: 'for an hour, with three workers that are restarted every five minutes',
    workers: 3,
    faultMs: 60 * MINUTE_MS,
    seenBy: 'all',
    laterMs: 0,
    restartsEveryMs: 5 * MINUTE_MS,
  },
];

describe.each(forms)('$name', (form) => {
  it.each(portFaults)('what is not concerned is indexed, and in the end all is: $name', async (fault) => {
    const t = process.cpuUsage();
    const result = await runMatrixRow(fault, form);
    const u = process.cpuUsage(t);
    console.log(fault.name, '|', form.name, '| cpu', Math.round((u.user + u.system) / 1000), JSON.stringify(result));
    expect(tags).toBeDefined();
  });
});
