import { describe, expect, it } from 'vitest';
import { attributeTexts, queueDifferences, wantedQueues } from '../../src/domain/provisioning/planning/queue-pair.ts';
import type { PlannedQueue, QueuePairPlan } from '../../src/pipeline/provision/queue-pair.ts';
import { createCliWorld } from './world.ts';

const place = { partition: 'aws', region: 'eu-central-1', account: '123456789012' };
const settings = { AWS_REGION: 'eu-central-1', TALLY_QUEUE_URL: 'https://sqs.eu-central-1.amazonaws.com/123456789012/tally-bucket-events' };

function planned(state: PlannedQueue['state']): QueuePairPlan {
  const queues = wantedQueues('tally', place).map((queue) => ({
    ...queue,
    state,
    differences: state === 'different' ? queueDifferences(queue, { ...attributeTexts(queue), DelaySeconds: '900' }) : [],
  }));
  return { region: place.region, account: place.account, queues, ...(state === 'as-planned' && { settings }) };
}

/** The command line beside queues in this state. */
function createWorld(state: PlannedQueue['state']) {
  const asked: string[] = [];
  const { run } = createCliWorld({
    openQueuePair: async () => ({
      queuePair: {
        async plan(prefix) {
          asked.push(`plan ${prefix}`);
          return planned(state);
        },
        async apply(prefix) {
          asked.push(`apply ${prefix}`);
          return { ...planned('as-planned'), ...(state !== 'as-planned' && { made: ['tally-dead-letters', 'tally-bucket-events'] }) };
        },
      },
      close: () => void asked.push('close'),
    }),
  });
  return { asked, run };
}

describe('tally queue create', () => {
  it('shows both queues, and names the command that makes them', async () => {
    const { asked, run } = createWorld('absent');
    const { exitCode, stdout, stderr } = await run('queue create --prefix prod');
    expect({ exitCode, asked }).toEqual({ exitCode: 0, asked: ['plan prod', 'close'] });
    expect(stdout).toMatch(/\+ queue .*:tally-dead-letters\n[^]*\+ queue .*:tally-bucket-events\n[^]*"maxReceiveCount": 100/);
    expect(stderr).toContain('tally queue create --apply --prefix prod');
  });

  it('prints nothing but the settings for a shell once the queues are made', async () => {
    const { asked, run } = createWorld('absent');
    const { exitCode, stdout, stderr } = await run('queue create --apply');
    expect({ exitCode, asked }).toEqual({ exitCode: 0, asked: ['apply tally', 'close'] });
    expect(stdout).toBe(`export AWS_REGION=eu-central-1\nexport TALLY_QUEUE_URL=${settings.TALLY_QUEUE_URL}\n`);
    expect(stderr).toBe('Made tally-dead-letters and tally-bucket-events. Start Tally with these settings.\n');
    const again = await createWorld('as-planned').run('queue create --apply');
    expect(again).toMatchObject({
      exitCode: 0,
      stdout,
      stderr: 'Both queues exist already, as planned. Start Tally with these settings.\n',
    });
  });

  it('shows each difference of a queue that was made otherwise, and the command that sets it', async () => {
    const { run } = createWorld('different');
    const { exitCode, stdout, stderr } = await run('queue create');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/~ queue .*:tally-bucket-events\n {4}DelaySeconds is 900\n {4}planned {2}0\n/);
    expect(stderr).toContain('tally queue create --apply');
    const json = await run('queue create --json');
    expect(JSON.parse(json.stdout)).toMatchObject({ queues: [{ state: 'different' }, { state: 'different' }] });
  });

  it('refuses a word that no queue may be named by', async () => {
    expect(await createWorld('absent').run('queue create --prefix', 'a b')).toMatchObject({ exitCode: 64 });
  });
});
