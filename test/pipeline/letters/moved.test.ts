import { describe, expect, it } from 'vitest';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { createLetterBrowser } from '../../../src/pipeline/letters/browser.ts';
import { createMovedLetters } from '../../../src/pipeline/letters/moved.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

const DLQ = 'http://queues/dead';
const nativeBody = (bucket: string): string =>
  JSON.stringify({
    Records: [
      {
        eventVersion: '2.1',
        eventSource: 'aws:s3',
        eventName: 'ObjectCreated:Put',
        s3: { bucket: { name: bucket }, object: { key: 'k' } },
      },
    ],
  });

async function setUp() {
  const clock = createFakeClock({ autoAdvance: true });
  const queues = createFakeQueues(clock);
  const telemetry = createFakeTelemetry();
  const { state } = createMemoryStore();
  const gaps = createGapReports({ state, clock, telemetry });
  const record = { bucket: 'photos', region: 'eu-west-1', source: 'notification', versioning: { status: 'never', observedAtMs: 0 } };
  const times = { enrich: 'none', floor: 0, createdAtMs: 0, createdBy: 'test', checkedAtMs: 0 };
  await state.put({ id: 'bucket:photos', kind: 'bucket', record: { ...record, ...times } }, null);
  const visible = (): number => queues.messages(DLQ).length;
  const look = createMovedLetters({
    browse: createLetterBrowser({ queues, telemetry }),
    state,
    gaps,
    clock,
    deadLetters: () => ({ queueUrl: DLQ, visible: visible() }),
  });
  const gapCount = async (): Promise<unknown> => ((await state.get('gap:photos:loss'))?.record as { count: number } | undefined)?.count;
  return { queues, gapCount, look: () => look(new AbortController().signal) };
}

describe('letters in the dead-letter queue', () => {
  it('open a loss gap of their bucket when SQS moved them, each once', async () => {
    const { queues, gapCount, look } = await setUp();
    await queues.send(DLQ, { body: nativeBody('photos'), attributes: {} });
    await look();
    await look();
    expect(await gapCount()).toBe(1);
    await queues.send(DLQ, { body: nativeBody('photos'), attributes: {} });
    await look();
    expect(await gapCount()).toBe(2);
    expect(queues.messages(DLQ)).toHaveLength(2);
  });

  it('open none when Tally sent them: theirs is open already', async () => {
    const { queues, gapCount, look } = await setUp();
    const attributes = { 'tally-fault': { dataType: 'String', stringValue: 'object.denied' } };
    await queues.send(DLQ, { body: nativeBody('photos'), attributes });
    await look();
    expect(await gapCount()).toBeUndefined();
  });

  it('are no bucket’s when their body names none', async () => {
    const { queues, gapCount, look } = await setUp();
    await queues.send(DLQ, { body: 'garbage', attributes: {} });
    await look();
    expect(await gapCount()).toBeUndefined();
  });
});
