import { describe, expect, it } from 'vitest';
import { gap } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

describe('tally gaps', () => {
  it('asks for what its options say and shows why each was opened', async () => {
    const world = createCliWorld();
    const { stdout } = await world.run('gaps', '--bucket', 'photos', '--state', 'open', '--limit', '5');
    expect(world.asked).toEqual([['listGaps', { query: { bucket: 'photos', state: 'open', limit: 5 } }]]);
    expect(stdout).toMatch(/^photos +loss +open +2 +2 h +2 h +- +dead letter: record.key-missing$/m);
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
    expect(stdout).toMatch(/record.key-missing +-$/m);
    expect(stdout).toMatch(/record.key-missing +5 min: job-7 failed: \\u\{1b\}\[2J$/m);
    expect(stdout).toMatch(/record.key-missing +job-8 runs first$/m);
  });
});
