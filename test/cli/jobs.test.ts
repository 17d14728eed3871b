import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { Job } from '../../src/registry/contract/job.ts';
import { zeroCounts } from '../../src/registry/contract/job-view.ts';
import { job, runningJob } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

const done: Job = { ...runningJob, state: 'done', progress: 1, finished_at: job.created_at };
const held: Job = {
  ...runningJob,
  state: 'done',
  counts: { ...zeroCounts, listed: 5, held: 12_345 },
  waiting: { deletions: 12_345 },
};
const failed: Job = {
  ...runningJob,
  state: 'failed',
  error: { code: 'listing.disorder', reason: 'b after \u001b[2J', after: 'photos/c' },
};

/** A world in which the job that is requested goes this way; it stays as the last one is. */
function worldOf(...course: readonly (Job | Error)[]) {
  const world = createCliWorld();
  world.nextAnswers(job);
  for (const step of course) {
    if (step instanceof Error) world.nextFails(step);
    else world.nextAnswers(step);
  }
  return world;
}

describe('tally reindex', () => {
  it('asks for what its options say and does not wait', async () => {
    const world = createCliWorld();
    const options = ['--prefix', '2026/', '--fill', '--now'];
    const { exitCode, stdout, stderr } = await world.run('reindex photos', ...options);
    const body = { prefix: '2026/', mode: 'apply', fill: true, now: true, repair: false };
    expect(world.asked).toEqual([['startReindex', { params: { bucket: 'photos' }, body }]]);
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: 'Job job-1 is queued.\n',
      stderr: 'To see its progress: tally jobs job-1\n',
    });
  });

  it('--wait tells how it goes on stderr in lines, and how it ended on stdout', async () => {
    const waiting: Job = { ...job, state: 'running', phase: 'waiting', waits_until: '2026-01-02T05:05:05.000Z' };
    const world = worldOf(job, waiting, runningJob, { ...runningJob, progress: 0.5 }, done);
    const { exitCode, stdout, stderr } = await world.run('reindex photos --wait');
    expect(exitCode).toBe(0);
    expect(stderr.split('\n')).toEqual([
      'Job job-1 is queued.',
      'job-1: queued',
      expect.stringMatching(/^job-1: waiting for late events, \d+ s left$/),
      'job-1: 25 %, 1,000 objects, 25,000/s, 0 s left, missing 6, stale 4, phantom 2',
      'job-1: done, 1,000 objects, missing 6, stale 4, phantom 2',
      '',
    ]);
    expect(stdout).toMatch(/^state +done$/m);
    expect(stdout).toMatch(/^written +10$/m);
    expect(world.asked.slice(1)).toEqual(Array.from({ length: 5 }, () => ['getJob', { params: { id: 'job-1' } }]));
    expect(world.isInterruptible()).toBe(false);
  });

  it.each([
    ['failed', failed, 1],
    ['cancelled', { ...job, state: 'cancelled' as const }, 3],
    ['done, but for deletions that it held back', held, 4],
  ])('--wait ends with a code of its own when the job is %s', async (_, end, code) => {
    expect((await worldOf(end).run('reindex photos --wait')).exitCode).toBe(code);
    expect((await worldOf(end).run('reindex photos --wait --json')).exitCode).toBe(code);
  });

  const emptied: Job = { ...held, counts: { ...zeroCounts, scanned: 1_000, phantom: 1_000, held: 1_000 }, waiting: { deletions: 1_000 } };
  it.each<[string, Job, string]>([
    ['of a job that is done', held, 'The deletion limit holds back 12,345 deletions. Everything else is done.'],
    ['of a job that was stopped', { ...held, state: 'cancelled' }, 'holds back 12,345 deletions. Not everything is compared yet.'],
    ['of a bucket that was emptied', emptied, 'The bucket is empty, so all of its documents would be deleted.'],
  ])('--wait says what the deletion limit waits for, and what to do: %s', async (_, end, text) => {
    const { stdout, stderr } = await worldOf(end).run('reindex photos --wait');
    expect(stdout).toMatch(/^held back +(12,345|1,000) \(\1 wait for you\)$/m);
    expect(stderr).toContain(text);
    expect(stderr).toContain('tally jobs allow job-1`\n');
    expect(stderr).toContain('tally jobs decline job-1');
  });

  it.each([
    ['none waiting', undefined],
    ['you declined them at 2026-01-02T03:04:05.000Z', { deletions: 12_345, declined_at: '2026-01-02T03:04:05.000Z' }],
  ])('asks nobody about deletions that do not wait for an answer: %s', async (text, waiting) => {
    const { exitCode, stdout, stderr } = await worldOf({ ...held, waiting }).run('reindex photos --wait');
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.not.stringContaining('allow') });
    expect(stdout).toContain(`12,345 (${text})`);
  });

  it('--wait names a document that the index refused', async () => {
    const refused = [{ key: 'a\u001b[2J', reason: 'mapper_parsing_exception' }, { key: 'b' }];
    const end: Job = { ...done, counts: { ...zeroCounts, refused: 2 }, examples: { refused } };
    const { exitCode, stdout } = await worldOf(end).run('reindex photos --wait');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^refused +2: a\\u\{1b\}\[2J \(mapper_parsing_exception\), and others: --json names them$/m);
  });

  it('--wait shows why a job failed, harmlessly, and what to do', async () => {
    const { stdout } = await worldOf(failed).run('reindex photos --wait');
    expect(stdout).toMatch(/^error +b after \\u\{1b\}\[2J \(listing\.disorder\)$/m);
    expect(stdout).toMatch(/^after the key +photos\/c$/m);
    expect(stdout).toMatch(/^advice +Use an S3 endpoint that lists keys in UTF-8 order/m);
  });

  it('--wait goes on through troubles that pass, and tells each once', async () => {
    const down = new FaultError('registry.unreachable', 'the registry at http://127.0.0.1:8080 cannot be reached: ECONNREFUSED');
    const { exitCode, stderr } = await worldOf(down, down, down, runningJob, done).run('reindex photos --wait');
    expect(exitCode).toBe(0);
    expect(stderr.match(/ECONNREFUSED/g)).toHaveLength(1);
  });

  it('--wait gives up after two minutes of trouble, with its exit code', async () => {
    // one after the other is one trouble
    const codes = ['index.unreachable', 'registry.unreachable'] as const;
    const down = Array.from({ length: 200 }, (_, second) => new FaultError(codes[second % 2] ?? 'index.unreachable', 'ECONNREFUSED'));
    const { exitCode, stderr } = await worldOf(...down).run('reindex photos --wait');
    expect(exitCode).toBe(69);
    expect(stderr).toMatch(/^tally: ECONNREFUSED \((index|registry)\.unreachable\)$/m);
  });

  it('Ctrl-C while waiting leaves the job alone and says how to look at it and cancel it', async () => {
    const world = worldOf(runningJob);
    world.nextDoes(async () => {
      world.interrupt();
      return runningJob;
    });
    const { exitCode, stdout, stderr } = await world.run('reindex photos --wait');
    expect({ exitCode, stdout }).toEqual({ exitCode: 130, stdout: '' });
    expect(stderr).toContain('The job continues. To see its progress: tally jobs job-1\nTo cancel it: tally jobs cancel job-1\n');
    expect(world.asked.map(([operation]) => operation)).not.toContain('changeJob');
    // a later Ctrl-C is nobody's business any more
    expect(world.isInterruptible()).toBe(false);
  });
});

describe('tally drift', () => {
  const report: Job = {
    ...done,
    mode: 'report',
    counts: {
      ...zeroCounts,
      listed: 1_000,
      scanned: 996,
      equal: 990,
      missing: 6,
      stale: 4,
      phantom: 2,
      incomplete: 5,
      bytes_listed: 2_048,
      list_requests: 1,
      head_requests: 2,
    },
  };
  const agreeing: Job = {
    ...report,
    counts: { ...zeroCounts, listed: 5, equal: 4, incomplete: 1, in_flight: 1 },
    examples: {},
  };

  it('asks for a report, waits for it and ends with 2 if there is drift', async () => {
    const world = worldOf(runningJob, report);
    const { exitCode, stdout } = await world.run('drift photos --prefix 2026/');
    const body = { prefix: '2026/', mode: 'report', fill: false, now: false, repair: false };
    expect(world.asked[0]).toEqual(['startReindex', { params: { bucket: 'photos' }, body }]);
    expect(exitCode).toBe(2);
    expect(stdout.split('\n')).toEqual([
      's3://photos/ and its index differ in 12 keys.',
      '',
      'job             job-1',
      'listed          1,000 objects, 2 KiB',
      'scanned         996 documents',
      'requests        1 LIST, 2 HEAD',
      'equal           990',
      'missing         6',
      'stale           4',
      'phantom         2',
      'lacking fields  5',
      'in flight       0',
      'cost            < $0.01 (estimate)',
      '',
      'EXAMPLE  FIELDS     KEY',
      'missing  -          a b/ü\\u{1b}[2J\\u{202e}\\u{a}"\\.jpg',
      'stale    etag size  b',
      '',
    ]);
  });

  it('ends with 0 if bucket and index agree, whatever lacks optional fields or is in flight', async () => {
    const { exitCode, stdout } = await worldOf(agreeing).run('drift photos');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('s3://photos/ and its index agree.\n');
    expect(stdout).not.toContain('EXAMPLE');
  });

  it('ends with 1 when the report failed although it had found drift', async () => {
    const { exitCode, stdout } = await worldOf({ ...failed, mode: 'report' }).run('drift photos');
    expect(exitCode).toBe(1);
    expect(stdout).toContain('listing.disorder');
    expect(stdout).not.toContain('agree');
  });
});
