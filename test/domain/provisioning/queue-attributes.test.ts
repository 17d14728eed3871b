import { describe, expect, it } from 'vitest';
import { queueChecks } from '../../../src/domain/provisioning/checks/all.ts';
import type { Finding } from '../../../src/domain/provisioning/checks/finding.ts';
import type { ObservedQueue } from '../../../src/domain/provisioning/observed.ts';
import { wiringOf } from '../../../src/domain/provisioning/wiring.ts';
import { LETTERS_ARN, QUEUE_ARN, wish } from '../../support/fakes/aws-parts.ts';

const DAY_S = 86_400;

/** What the checks of the queues say: those of `tally queue create`, with these differences. */
function findingsOf(queue: Partial<ObservedQueue> = {}, letters: Partial<ObservedQueue> = {}): readonly Finding[] {
  const redrive = { deadLetterArn: LETTERS_ARN, maxReceiveCount: 20 };
  const queues: readonly ObservedQueue[] = [
    { arn: QUEUE_ARN, isFifo: false, ...redrive, retentionS: 7 * DAY_S, delayS: 0, messageBytesMax: 262_144, ...queue },
    { arn: LETTERS_ARN, isFifo: false, retentionS: 14 * DAY_S, delayS: 0, messageBytesMax: 262_144, ...letters },
  ];
  const notification = { ok: true, configuration: { entries: [], eventBridge: false }, xml: '' } as const;
  const facts = { wish, wiring: wiringOf(wish), observed: { notification, queues } };
  return queueChecks.flatMap((check) => check(facts) ?? []);
}

const seen = (findings: readonly Finding[]): readonly string[] => findings.map(({ code, severity }) => `${severity} ${code}`);

describe('the checks of how queues keep and deliver messages', () => {
  it('find nothing in the queues of `tally queue create`, in those that SQS makes by default, and where a store says nothing', () => {
    expect(findingsOf()).toEqual([]);
    expect(findingsOf({ retentionS: 345_600, messageBytesMax: 1_048_576 })).toEqual([]);
    const [{ retentionS: _, delayS: __, messageBytesMax: ___, ...silent }] = [{ retentionS: 1, delayS: 1, messageBytesMax: 1 }];
    expect(findingsOf({ ...silent })).toEqual([]);
  });

  it.each([
    [59, 'broken'],
    [3_599, 'broken'],
    [3_600, 'degraded'],
    [345_599, 'degraded'],
  ])('a retention of %i s is %s', (retentionS, severity) => {
    const [finding] = findingsOf({ retentionS });
    expect(finding).toMatchObject({ code: 'connect.queue-retention', severity });
    expect(finding!.fix).toMatch(/--queue-name tally-bucket-events .*--attributes '\{"MessageRetentionPeriod":"345600"\}'$/);
  });

  it('letters must outlast their time in the bucket queue, as far as SQS permits', () => {
    expect(seen(findingsOf({}, { retentionS: 7 * DAY_S }))).toEqual(['degraded connect.letter-retention']);
    expect(seen(findingsOf({}, { retentionS: 7 * DAY_S + 1 }))).toEqual([]);
    expect(seen(findingsOf({ retentionS: 14 * DAY_S }))).toEqual([]);
    expect(seen(findingsOf({ retentionS: 345_600 }, { retentionS: 345_600 }))).toEqual(['degraded connect.letter-retention']);
    const [finding] = findingsOf({}, { retentionS: DAY_S });
    expect(finding!.fix).toMatch(/--queue-name tally-dead-letters .*'\{"MessageRetentionPeriod":"1209600"\}'$/);
  });

  it('a delay of more than a minute is found', () => {
    expect(findingsOf({ delayS: 60 })).toEqual([]);
    const [finding] = findingsOf({ delayS: 61 });
    expect(finding).toMatchObject({
      code: 'connect.queue-delay',
      severity: 'degraded',
      fix: expect.stringMatching(/'\{"DelaySeconds":"0"\}'$/),
    });
    // letters wait for a person anyway
    expect(findingsOf({}, { delayS: 900 })).toEqual([]);
  });

  it.each([
    [{ messageBytesMax: 1_024 }, {}, 'broken', 'tally-bucket-events'],
    [{ messageBytesMax: 16_384 }, {}, 'degraded', 'tally-bucket-events'],
    [{ messageBytesMax: 262_143 }, {}, 'degraded', 'tally-bucket-events'],
    [{}, { messageBytesMax: 1_024 }, 'degraded', 'tally-dead-letters'],
    // the queue of the events comes first
    [{ messageBytesMax: 1_024 }, { messageBytesMax: 1_024 }, 'broken', 'tally-bucket-events'],
  ])('of messages that are refused: %j and %j is %s', (queue, letters, severity, name) => {
    const [finding] = findingsOf(queue, letters);
    expect(finding).toMatchObject({ code: 'connect.queue-message-size', severity });
    expect(finding!.fix).toContain(`--queue-name ${name} `);
    expect(finding!.fix).toMatch(/'\{"MaximumMessageSize":"262144"\}'$/);
  });
});
