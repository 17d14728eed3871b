import { describe, expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { runTally } from '../support/servers/daemon.ts';
import type { PassingRequest, Rule } from '../support/servers/fault-proxy.ts';
import type { QueueWorld } from '../support/worlds/queue.ts';
import { openFlow } from '../support/worlds/flow.ts';
import { opensearchUrl } from '../support/servers/found.ts';

const onOpenSearch = test.skipIf(opensearchUrl() === undefined).concurrent;

const STOPPED = { code: 0, signal: null };
/** Longer than any test: what a message that is not given back would stay hidden for, and what finishing what is in hand may take. */
const LONG = { TALLY_INGEST_VISIBILITY_S: '600', TALLY_SHUTDOWN_TIMEOUT_MS: '600000' };

/**
 * Holds every poll back before SQS, and resolves when SQS has answered those that were under way. A daemon that stops waits
 * half a second for a poll: what SQS hands out later, on a busy machine, stays in flight until its visibility timeout.
 */
async function holdPolls({ sqs }: QueueWorld): Promise<Rule> {
  const isPoll = ({ operation }: PassingRequest): boolean => operation === 'ReceiveMessage';
  const polls = sqs.interfere({ kind: 'hang' }, isPoll);
  await sqs.quiet(isPoll);
  return polls;
}

/**
 * Resolves when the queue has taken back all that a daemon held. The daemon has ended then, perhaps before this process has
 * read the last of its requests.
 */
async function givenBack(world: QueueWorld): Promise<void> {
  await until('everything was given back', () => world.messages().inFlight.length === 0);
}

describe('asked to stop', () => {
  onOpenSearch(
    'while OpenSearch is out of reach, it gives back at once what it holds',
    async () => {
      await using flow = await openFlow('opensearch');
      const { world, index } = flow;
      const daemon = await flow.start({ ...LONG, TALLY_SHUTDOWN_TIMEOUT_MS: '10000' });
      world.send(world.put('before'));
      await flow.converged(daemon);
      await index.refuse();
      for (let each = 0; each < 300; each += 1) world.send(world.put(`key/${each}`));
      await daemon.line('receiving paused');
      const polls = await holdPolls(world);
      expect(await daemon.stop()).toEqual(STOPPED);
      polls.remove();
      await givenBack(world);
      expect(world.messages().visible).toHaveLength(300);
    },
    600_000,
  );
});

describe('a second daemon on one SQLite file', () => {
  test.concurrent('ends with 78 and says why, while commands reach the first', async () => {
    await using flow = await openFlow('sqlite');
    const { world } = flow;
    const daemon = await flow.start();
    world.send(world.put('docs/a.txt'));
    await flow.converged(daemon);

    const second = await flow.start({}, { awaitReady: false });
    expect(await second.exited).toEqual({ code: 78, signal: null });
    expect(second.text).toContain('is served by another tally process');

    const list = await runTally(['bucket', 'list', '--json'], daemon.operator);
    expect(list).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(list.stdout)).toMatchObject({ items: [{ bucket: world.bucket }, { bucket: world.neighbour.bucket }] });
    world.send(world.put('docs/b.txt'));
    await flow.converged(daemon);
    expect(await daemon.stop()).toEqual(STOPPED);
  }, 600_000);
});
