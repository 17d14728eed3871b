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
    storageHooks.beforeLook = (bucket) => facts.push(`look for ${of(bucket)}`);
  }
  return { facts, tracing, watch };
}

async function createTracedWorld(options: Parameters<typeof createIngestWorld>[0] & { readonly sampled?: () => boolean } = {}) {
  const recorder = createRecorder(options);
  const world = await createIngestWorld({ ...options, tracing: recorder.tracing });
  recorder.watch(world);
  return { world, facts: recorder.facts };
}

describe('the trace of a message', () => {
  it('goes from its receive over its bulk request to its settlement', async () => {
    const { world, facts } = await createTracedWorld();
    await world.send(world.put('k'));
    await world.run(200);
    expect(facts).toEqual(['bulk for 1', 'bulk for 1 ended: ok', '1 decided: 1 written', '1 settled: delete']);
  });

  it('goes over a look where the event does not tell the truth by itself', async () => {
    const { world, facts } = await createTracedWorld();
    world.storage.put(BUCKET, 'k');
    await world.send(syntheticRecord('k', { eventTimeMs: world.clock.nowMs() }));
    await world.run(200);
    expect(facts).toEqual(['look for 1', 'bulk for 1', 'bulk for 1 ended: ok', '1 decided: 1 provisional', '1 settled: wait']);
  });

  it('shares a look, its write and a bulk request with others', async () => {
    const { world, facts } = await createTracedWorld();
    world.storage.put(BUCKET, 'k');
    const observed = syntheticRecord('k', { eventTimeMs: world.clock.nowMs() });
    await world.send(observed);
    await world.send(observed);
    await world.send(observed, observed);
    await world.run(200);
    expect(facts.filter((fact) => !fact.includes('decided') && !fact.includes('settled'))).toEqual([
      'look for 1+2+3+3',
      'bulk for 1+2+3+3',
      'bulk for 1+2+3+3 ended: ok',
    ]);
  });

  it('is one for each receive', async () => {
    const { world, facts } = await createTracedWorld();
    world.storage.put(BUCKET, 'k');
    world.storage.failWith(new FaultError('object.denied', 'no permission'));
    await world.send(syntheticRecord('k', { eventTimeMs: world.clock.nowMs() }));
    await world.run(40_000);
    expect(facts).toEqual([
      'look for 1',
      '1 decided: 1 deferred',
      '1 settled: defer object.denied',
      'look for 2',
      '2 decided: 1 deferred',
      '2 settled: defer object.denied',
    ]);
  });

  it('ends with the fault of a dead letter', async () => {
    const { world, facts } = await createTracedWorld();
    await world.sendBody('no JSON');
    await world.run(2_000);
    expect(facts).toEqual(['1 settled: dead-letter message.not-json']);
  });

  it('tells a bulk request that failed', async () => {
    const { world, facts } = await createTracedWorld();
    world.store.broken.writes = new FaultError('index.unreachable', 'no route');
    await world.send(world.put('k'));
    await world.run(200);
    expect(facts).toEqual(['bulk for 1', 'bulk for 1 ended: index.unreachable']);
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
