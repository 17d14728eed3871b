/** What the data path tells of a message on its way, to a tracing that takes it all down. */
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import type { Traced, Tracing } from '../../../src/pipeline/ports/tracing.ts';
import { NO_TRACES, untraced } from '../../../src/pipeline/ports/tracing.ts';
import { BUCKET, createIngestWorld, syntheticRecord, type IngestWorld } from '../../support/worlds/ingest.ts';

/** Each fact, with the number of the message it is about: 1 is the one that was received first. */
function createRecorder({ sampled = (): boolean => true } = {}) {
  const facts: string[] = [];
  const numbers = new Map<string, number>();
  const of = ({ traces = NO_TRACES }: Traced): string => traces.map(({ context }) => numbers.get(context.spanId)).join('+');
  const tracing: Tracing = {
    message({ messageId, receiveCount }) {
      if (!sampled()) return NO_TRACES;
      const number = numbers.size + 1;
      const spanId = `${messageId}/${receiveCount}`;
      numbers.set(spanId, number);
      return [
        {
          context: { traceId: messageId, spanId, isSampled: true },
          decided: (records, outcomes) => facts.push(`${number} decided: ${records.length} ${outcomes.map(({ kind }) => kind).join()}`),
          servedBy: () => undefined,
          settled: (settlement, fault) => facts.push(`${number} settled: ${settlement}${fault === undefined ? '' : ` ${fault}`}`),
        },
      ];
    },
    s3Request: () => untraced,
    bulk(writes) {
      const served = writes.map(of).join();
      facts.push(`bulk for ${served}`);
      return { ended: (errorType) => facts.push(`bulk for ${served} ended: ${errorType ?? 'ok'}`) };
    },
  };
  /** Told by the storage, which is given the traces. */
  function watch(world: IngestWorld): void {
    const { storageHooks } = world;
    storageHooks.beforeHead = (bucket) => facts.push(`HEAD for ${of(bucket)}`);
  }
  return { facts, tracing, watch };
}

async function createTracedWorld(options: Parameters<typeof createIngestWorld>[0] & { readonly sampled?: () => boolean } = {}) {
  const recorder = createRecorder(options);
  const world = await createIngestWorld({ ...options, tracing: recorder.tracing });
  recorder.watch(world);
  return { world, facts: recorder.facts };
}

function observedPut(world: IngestWorld) {
  world.storage.put(BUCKET, 'k');
  return syntheticRecord('k', { eventTimeMs: world.clock.nowMs() });
}

/** What is sent, for how long it runs, and what is told of it. */
const stories: readonly (readonly [string, (world: IngestWorld) => Promise<void>, number, readonly string[]])[] = [
  [
    'goes from its receive over its bulk request to its settlement',
    (world) => world.send(world.put('k')),
    200,
    ['bulk for 1', 'bulk for 1 ended: ok', '1 decided: 1 written', '1 settled: delete'],
  ],
  [
    'goes over a HEAD request where the event does not tell the truth by itself',
    (world) => world.send(observedPut(world)),
    200,
    ['HEAD for 1', 'bulk for 1', 'bulk for 1 ended: ok', '1 decided: 1 provisional', '1 settled: wait'],
  ],
  [
    'is one for each receive',
    (world) => {
      world.storage.failWith(new FaultError('object.denied', 'no permission'));
      return world.send(observedPut(world));
    },
    40_000,
    [1, 2].flatMap((number) => [`HEAD for ${number}`, `${number} decided: 1 deferred`, `${number} settled: defer object.denied`]),
  ],
  ['ends with the fault of a dead letter', (world) => world.sendBody('no JSON'), 2_000, ['1 settled: dead-letter message.not-json']],
  [
    'tells a bulk request that failed',
    (world) => {
      world.store.broken.writes = new FaultError('index.unreachable', 'no route');
      return world.send(world.put('k'));
    },
    200,
    ['bulk for 1', 'bulk for 1 ended: index.unreachable'],
  ],
];

describe('the trace of a message', () => {
  it.each(stories)('%s', async (_, send, forMs, told) => {
    const { world, facts } = await createTracedWorld();
    await send(world);
    await world.run(forMs);
    expect(facts).toEqual(told);
  });

  it('shares a HEAD request, its write and a bulk request with others', async () => {
    const { world, facts } = await createTracedWorld();
    const observed = observedPut(world);
    await world.send(observed);
    await world.send(observed);
    await world.send(observed, observed);
    await world.run(200);
    expect(facts.filter((fact) => !fact.includes('decided') && !fact.includes('settled'))).toEqual([
      'HEAD for 1+2+3+3',
      'bulk for 1+2+3+3',
      'bulk for 1+2+3+3 ended: ok',
    ]);
  });

  it('ends at a stop, given back', async () => {
    const { world, facts } = await createTracedWorld();
    world.store.broken.all = new FaultError('index.unreachable', 'no route');
    await world.send(world.put('k'));
    await world.run(200);
    await world.stop();
    expect(facts.at(-1)).toBe('1 settled: give-back');
  });
});

it('nothing is told of a message that is not sampled, beyond its share in a request', async () => {
  let received = 0;
  const { world, facts } = await createTracedWorld({ sampled: () => (received += 1) === 2 });
  await world.send(world.put('a'));
  await world.send(world.put('b'));
  await world.send(world.put('c'));
  await world.run(200);
  expect(facts).toEqual(['bulk for ,1,', 'bulk for ,1, ended: ok', '1 decided: 1 written', '1 settled: delete']);
});
