import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { FaultProxy, Interference, PassingRequest } from '../support/servers/fault-proxy.ts';
import type { Flow, IndexKind } from '../support/worlds/flow.ts';
import { indexKinds, openFlow } from '../support/worlds/flow.ts';
import type { QueueWorld } from '../support/worlds/queue.ts';
import { createRandom } from '../support/random/seeded.ts';
import { inTurns, isLong, oneOf } from '../support/breadth.ts';

interface Moment {
  readonly proxy: (flow: Flow) => FaultProxy;
  readonly interference: Interference;
  readonly matches: (request: PassingRequest) => boolean;
}

/** A provisional write is settled some 45 s after it, and a killed daemon's messages come back before that. */
const SETTLE_TIMEOUT_MS = 300_000;

/** Deaths of the daemon that is killed again and again. */
const DEATHS = isLong ? 5 : 3;

const BAD_BODIES = ['not json at all', '{"Records":[{"eventVersion":"9.0","eventSource":"aws:s3","s3":{}}]}'];

const before: Interference = { kind: 'hang' };
const after: Interference = { kind: 'swallow-answer' };
const sqs = (flow: Flow): FaultProxy => flow.world.sqs;
const s3 = (flow: Flow): FaultProxy => flow.world.s3;
const index = (flow: Flow): FaultProxy => flow.index;
const operation = (name: string) => (request: PassingRequest) => request.operation === name;
const isBulk = ({ path }: PassingRequest): boolean => path.includes('_bulk');
const isObjectHead = ({ method, path }: PassingRequest): boolean => method === 'HEAD' && path.split('/').length > 2;

const indexMoments: readonly (readonly [string, Moment])[] = [
  ['before a bulk request arrives', { proxy: index, interference: before, matches: isBulk }],
  ['after a bulk request was done, before its answer', { proxy: index, interference: after, matches: isBulk }],
];

const moments: readonly (readonly [string, Moment])[] = [
  ['before S3 is asked about an object', { proxy: s3, interference: before, matches: isObjectHead }],
  ['after S3 was asked about an object, before its answer', { proxy: s3, interference: after, matches: isObjectHead }],
  ['before messages are deleted', { proxy: sqs, interference: before, matches: operation('DeleteMessageBatch') }],
  ['after messages were deleted, before the answer', { proxy: sqs, interference: after, matches: operation('DeleteMessageBatch') }],
  ['before a dead letter is sent', { proxy: sqs, interference: before, matches: operation('SendMessage') }],
  ['after a dead letter was sent, before the answer', { proxy: sqs, interference: after, matches: operation('SendMessage') }],
  ['after messages were received, before they arrive', { proxy: sqs, interference: after, matches: operation('ReceiveMessage') }],
];

const settleMoments: readonly (readonly [string, Moment])[] = [
  [
    'before the message of a provisional write is hidden',
    { proxy: sqs, interference: before, matches: operation('ChangeMessageVisibilityBatch') },
  ],
  [
    'after the message of a provisional write was hidden, before the answer',
    { proxy: sqs, interference: after, matches: operation('ChangeMessageVisibilityBatch') },
  ],
];

/** Kills a daemon at the moment and lets another one finish: index and bucket agree, and only what is bad is dead-lettered. */
async function killAt(flow: Flow, { proxy, interference, matches }: Moment, load: (world: QueueWorld) => readonly string[]): Promise<void> {
  const { world } = flow;
  const victim = await flow.start();
  for (let each = 0; each < 20; each += 1) world.send(world.put(`old/${each}`));
  await flow.converged(victim);

  const moment = proxy(flow).holdAt(interference, matches);
  const bodies = load(world);
  world.send(...bodies, ...BAD_BODIES);
  await moment.hit;
  await victim.kill();
  // something is left: what the moment needs is held back, so that it cannot have passed
  const { visible, inFlight } = world.messages();
  expect(visible.length + inFlight.length).toBeGreaterThan(0);
  moment.remove();

  const successor = await flow.start();
  await flow.converged(successor, SETTLE_TIMEOUT_MS);
  // sent again when nobody can know that it was sent
  expect(new Set(world.deadLetters().map(({ body }) => body))).toEqual(new Set(BAD_BODIES));
  expect(world.deadLetters().length).toBeLessThanOrEqual(2 * BAD_BODIES.length);
}

function putsAndDeletes(world: QueueWorld): readonly string[] {
  return Array.from({ length: 20 }, (_, each) => [
    world.put(`new/${each}`),
    world.put(`old/${each}`),
    world.remove(`old/${each % 10}`),
  ]).flat();
}

function upload(world: QueueWorld): readonly string[] {
  return [world.put('upload', 'ObjectCreated:CompleteMultipartUpload')];
}

type Case = readonly [name: string, kind: IndexKind, moment: Moment, load: (world: QueueWorld) => readonly string[]];

/** The slowest first: they wait for a settle, and the others run beside them. */
const cases: readonly Case[] = [
  ...inTurns(settleMoments, indexKinds).map(([[name, moment], kind]): Case => [name, kind, moment, upload]),
  ...inTurns(moments, indexKinds).map(([[name, moment], kind]): Case => [name, kind, moment, putsAndDeletes]),
  ...indexKinds
    .filter((kind) => kind === 'opensearch')
    .flatMap((kind) => indexMoments.map(([name, moment]): Case => [name, kind, moment, putsAndDeletes])),
];

describe('killed', () => {
  test.concurrent.each(cases)(
    '%s, with index %s, nothing is lost',
    async (_, kind, moment, load) => {
      await using flow = await openFlow(kind);
      await killAt(flow, moment, load);
    },
    600_000,
  );

  test.concurrent.each(oneOf(indexKinds))(
    'again and again under load, with index %s, nothing is lost',
    async (kind) => {
      await using flow = await openFlow(kind, { maxReceiveCount: 20 });
      const { world } = flow;
      const random = createRandom(kind === 'sqlite' ? 11 : 12);
      for (let round = 0; round < DEATHS; round += 1) {
        const victim = await flow.start();
        const endMs = performance.now() + random.integer(50, 1_500);
        while (performance.now() < endMs) {
          const key = `key/${random.integer(0, 40)}`;
          world.send(random.integer(0, 3) === 0 ? world.remove(key) : world.put(key));
          await delay(random.integer(0, 8));
        }
        await victim.kill();
      }
      await flow.converged(await flow.start(), SETTLE_TIMEOUT_MS);
      expect(world.deadLetters()).toEqual([]);
    },
    600_000,
  );
});
