import { describe, expect, it } from 'vitest';
import { gap } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

describe('tally gaps', () => {
  it('asks for what its options say and shows why each was opened', async () => {
    const world = createCliWorld();
    const { stdout } = await world.run('gaps --bucket photos --state open --limit 5');
    expect(world.asked).toEqual([['listGaps', { query: { bucket: 'photos', state: 'open', limit: 5 } }]]);
    expect(stdout).toMatch(/^photos +loss +open +- +2 +2 h +2 h +- +dead letter: record.key-missing +re-index due$/m);
  });

  it('shows which job is closing it or has closed it', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [gap, { ...gap, state: 'closing', job_id: 'job-7' }] });
    const { stdout } = await world.run('gaps');
    expect(stdout).toMatch(/^photos +loss +open +- +2 /m);
    expect(stdout).toMatch(/^photos +loss +closing +job-7 +2 /m);
  });

  it('says what it waits for, and for how long by the present plan', async () => {
    const world = createCliWorld();
    const waits = { reason: 'job-7 failed: \u001b[2J', until: '2026-01-02T05:09:05.000Z' };
    world.nextAnswers({ items: [gap, { ...gap, waits }, { ...gap, waits: { reason: 'job-8 runs first' } }] });
    const { stdout } = await world.run('gaps');
    expect(stdout).toMatch(/record.key-missing +re-index due$/m);
    expect(stdout).toMatch(/record.key-missing +waits: job-7 failed: \\u\{1b\}\[2J, until 05:09 UTC \(in 5 min\)$/m);
    expect(stdout).toMatch(/record.key-missing +waits: job-8 runs first$/m);
  });

  it('says what happens next and when, and what waits for a person with the command that ends it', async () => {
    const world = createCliWorld();
    const held = { ...gap, held: true, waits: { reason: 'the bucket was connected without a first re-index' } };
    world.nextAnswers({
      items: [
        { ...gap, due_at: '2026-01-02T05:07:05.000Z' },
        { ...gap, due_at: '2026-01-03T05:07:05.000Z' },
        { ...gap, not_before: '2026-01-02T05:09:05.000Z', waits: { reason: 'see `tally doctor photos`' } },
        { ...gap, state: 'closing', job_id: 'job-7' },
        { ...gap, state: 'closed', job_id: 'job-6' },
        held,
      ],
    });
    const { stdout } = await world.run('gaps');
    const next = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(stdout.indexOf('NEXT')));
    expect(next).toEqual([
      'NEXT',
      're-index at 05:07 UTC (in 3 min)',
      're-index at 2026-01-03 05:07 UTC (in 24 h)',
      'waits: see `tally doctor photos`, until 05:09 UTC (in 5 min)',
      'job-7 closes it',
      '-',
      'waits for you: the bucket was connected without a first re-index: `tally reindex photos`',
    ]);
  });

  it('shows nothing under LAST that is yet to come', async () => {
    const world = createCliWorld();
    world.nextAnswers({ items: [{ ...gap, last_seen_at: '2026-01-02T08:04:05.000Z' }] });
    const { stdout } = await world.run('gaps');
    expect(stdout).toMatch(/^photos +loss +open +- +2 +2 h +0 s +-/m);
  });
});
