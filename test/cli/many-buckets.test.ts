import { describe, expect, it } from 'vitest';
import type { AddedBucket } from '../../src/registry/contract/buckets.ts';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { bucketAnswer } from '../support/fakes/control.ts';
import { createCliWorld } from './world.ts';

function answerOf(bucket: string, how: { readonly changed?: boolean; readonly made?: boolean } = {}): AddedBucket {
  const connection = how.made === undefined ? {} : { connection: { bucket, state: 'applied' as const, changed: how.made } };
  return { ...bucketAnswer, bucket, changed: how.changed ?? false, ...connection };
}

const lines = ({ stdout }: { readonly stdout: string }): readonly string[] =>
  stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '));

describe('tally bucket add of several buckets', () => {
  it('adds each by itself, and prints one table, with each failure, its code and its advice', async () => {
    const world = createCliWorld();
    world.nextAnswers(answerOf('photos', { changed: true, made: true }));
    world.nextFails(new FaultError('bucket.missing', 'there is no bucket gone\u001b[2J'));
    world.nextAnswers(answerOf('videos', { made: false }));
    world.nextFails(new RequestError('connect.overlap', 'photos has another: run `tally bucket add music`'));
    const ran = await world.run('bucket add --source eventbridge photos gone videos music photos');
    expect(world.asked.map(([, request]) => request)).toEqual(
      ['photos', 'gone', 'videos', 'music'].map((bucket) => ({ body: { bucket, source: 'eventbridge' } })),
    );
    expect(lines(ran).slice(0, 6)).toEqual([
      'BUCKET | RESULT | SOURCE',
      'photos | applied | notification',
      'gone | failed | -',
      'videos | unchanged | notification',
      'music | failed | -',
      '',
    ]);
    expect(ran.stdout).toMatch(/^gone: there is no bucket gone\\u\{1b\}.* \(bucket\.missing\)$/m);
    expect(ran.stdout).toMatch(/^ {2}see https?:\/\/\S+\/docs\/reference\/error-codes\.\w+#bucket-missing$/m);
    expect(ran.stdout).toMatch(/^music: photos has another: run `tally bucket add music` \(connect\.overlap\)$/m);
    expect(ran.exitCode).toBe(7);
  });

  it('says in JSON what became of each', async () => {
    const world = createCliWorld();
    world.nextAnswers(answerOf('photos', { changed: true }));
    world.nextFails(new FaultError('bucket.missing', 'there is no bucket gone'));
    const { stdout, stderr } = await world.run('bucket add photos gone --json');
    expect(JSON.parse(stdout)).toMatchObject({
      buckets: [
        { bucket: 'photos', result: 'connected', answer: { bucket: 'photos', changed: true } },
        { bucket: 'gone', result: 'failed', error: { code: 'bucket.missing', advice: expect.any(String) } },
      ],
    });
    expect(stderr).toBe('');
  });

  it('agrees to the switch of EventBridge where it is asked to, each time that it repeats an apply', async () => {
    const world = createCliWorld();
    world.nextAnswers({ ...answerOf('photos'), connection: { bucket: 'photos', state: 'applying', retry_after_ms: 1 } });
    world.nextAnswers(answerOf('videos', { made: false }));
    const ran = await world.run('bucket add photos videos --source eventbridge --switch-on-eventbridge');
    const bodies = world.asked.map(([, { body }]) => body);
    expect(bodies).toEqual(
      ['photos', 'videos', 'photos'].map((bucket) => ({ bucket, source: 'eventbridge', switch_on_eventbridge: true })),
    );
    expect(ran.exitCode).toBe(0);
  });

  it('reads names from a file, one a line, with comments', async () => {
    const text = '# ours\nphotos\n\n  videos # the large one\r\n';
    const byFile = createCliWorld({ readText: (path) => (path === 'buckets.txt' ? text : undefined) });
    await byFile.run('bucket add --from-file buckets.txt music');
    expect(byFile.asked.map(([, request]) => (request.body as { bucket: string }).bucket)).toEqual(['music', 'photos', 'videos']);
  });

  it('refuses what names no bucket, and a plan and its token, which are about one', async () => {
    const world = createCliWorld({ readText: (path) => (path === 'large' ? undefined : '# none\n') });
    for (const args of [
      [],
      ['--from-file', 'buckets.txt'],
      ['--from-file', 'large'],
      ['a-b', 'c-d', '--agree', '0f1e'],
      ['a-b', 'c-d', '--plan'],
    ])
      expect((await world.run('bucket add', ...args)).exitCode).toBe(64);
    expect(world.asked).toEqual([]);
  });
});
