import { describe, expect, test } from 'vitest';
import type { Daemon } from '../support/servers/daemon.ts';
import type { FaultProxy, Interference, PassingRequest } from '../support/servers/fault-proxy.ts';
import type { Flow, IndexKind } from '../support/worlds/flow.ts';
import { indexKinds, openFlow } from '../support/worlds/flow.ts';
import type { QueueWorld } from '../support/worlds/queue.ts';
import { inTurns, isLong } from '../support/breadth.ts';

interface Moment {
  readonly name: string;
  readonly proxy: (flow: Flow) => FaultProxy;
  readonly interference: Interference;
  readonly matches: (request: PassingRequest) => boolean;
  /** What is sent then. Default: puts and deletes. */
  readonly load?: (world: QueueWorld) => readonly string[];
}

/** A provisional write is settled some 45 s after it, and a killed daemon's messages come back before that. */
const SETTLE_TIMEOUT_MS = 300_000;

const BAD_BODIES = ['not json at all', '{"Records":[{"eventVersion":"9.0","eventSource":"aws:s3","s3":{}}]}'];

const hang: Interference = { kind: 'hang' };
const swallow: Interference = { kind: 'swallow-answer' };
const sqs = (flow: Flow): FaultProxy => flow.world.sqs;
const s3 = (flow: Flow): FaultProxy => flow.world.s3;
const index = (flow: Flow): FaultProxy => flow.index;
const operation = (name: string) => (request: PassingRequest) => request.operation === name;
const isBulk = ({ path }: PassingRequest): boolean => path.includes('_bulk');
const isObjectHead = ({ method, path }: PassingRequest): boolean => method === 'HEAD' && path.split('/').length > 2;

const indexMoments: readonly Moment[] = [
  { name: 'before a bulk request arrives', proxy: index, interference: hang, matches: isBulk },
  { name: 'after a bulk request was done, before its answer', proxy: index, interference: swallow, matches: isBulk },
];

const moments: readonly Moment[] = [
  { name: 'before S3 is asked about an object', proxy: s3, interference: hang, matches: isObjectHead },
  { name: 'after S3 was asked about an object, before its answer', proxy: s3, interference: swallow, matches: isObjectHead },
  { name: 'before messages are deleted', proxy: sqs, interference: hang, matches: operation('DeleteMessageBatch') },
  { name: 'after messages were deleted, before the answer', proxy: sqs, interference: swallow, matches: operation('DeleteMessageBatch') },
  { name: 'before a dead letter is sent', proxy: sqs, interference: hang, matches: operation('SendMessage') },
  { name: 'after a dead letter was sent, before the answer', proxy: sqs, interference: swallow, matches: operation('SendMessage') },
  { name: 'after messages were received, before they arrive', proxy: sqs, interference: swallow, matches: operation('ReceiveMessage') },
];

const settleMoments: readonly Moment[] = [
  {
    name: 'before the message of a provisional write is hidden',
    proxy: sqs,
    interference: hang,
    matches: operation('ChangeMessageVisibilityBatch'),
    load: upload,
  },
  {
    name: 'after the message of a provisional write was hidden, before the answer',
    proxy: sqs,
    interference: swallow,
    matches: operation('ChangeMessageVisibilityBatch'),
    load: upload,
  },
];

/**
 * Kills the daemon at the moment, and lets another one finish: index and bucket agree, and of all that is bad each body is
 * dead-lettered. Resolves with that one.
 */
async function killAt(flow: Flow, victim: Daemon, { name, proxy, interference, matches, load = putsAndDeletes }: Moment): Promise<Daemon> {
  const { world } = flow;
  const before = new Set(world.deadLetters().map(({ messageId }) => messageId));
  for (let each = 0; each < 20; each += 1) world.send(world.put(`old/${each}`));
  await flow.converged(victim);

  const moment = proxy(flow).holdAt(interference, matches);
  world.send(...load(world), ...BAD_BODIES);
  await moment.hit;
  await victim.kill();
  // something is left: what the moment needs is held back, so that it cannot have passed
  const { visible, inFlight } = world.messages();
  expect(visible.length + inFlight.length, name).toBeGreaterThan(0);
  moment.remove();

  const successor = await flow.start();
  await flow.converged(successor, SETTLE_TIMEOUT_MS);
  // one is sent at each receive after which the message was not deleted in time: both are received again after a kill, or on a busy machine
  const letters = world.deadLetters().filter(({ messageId }) => !before.has(messageId));
  expect(new Set(letters.map(({ body }) => body)), name).toEqual(new Set(BAD_BODIES));
  const sources = letters.map(({ messageAttributes }) => messageAttributes['tally-context']?.StringValue);
  expect(new Set(sources).size, name).toBe(BAD_BODIES.length);
  return successor;
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

/** What was not done before a death is done like what is new: what was done, and is not known to be, stands for both each day. */
function played(all: readonly Moment[]): readonly Moment[] {
  return isLong ? all : all.filter(({ interference }) => interference === swallow);
}

/** Those of one kind, in turns with the other kind each day. First what hides a message, as a look at the dead letters of the others does too. */
function momentsOf(kind: IndexKind): readonly Moment[] {
  const shared = inTurns(played([...settleMoments, ...moments]), indexKinds).flatMap(([moment, each]) => (each === kind ? [moment] : []));
  return kind === 'opensearch' ? [...shared, ...played(indexMoments)] : shared;
}

describe('killed', () => {
  test.concurrent.each(indexKinds)(
    `${isLong ? 'before and after' : 'after'} each of its steps, with index %s, nothing is lost`,
    async (kind) => {
      await using flow = await openFlow(kind);
      // each successor is the next victim
      let daemon = await flow.start();
      for (const moment of momentsOf(kind)) daemon = await killAt(flow, daemon, moment);
    },
    1_200_000,
  );
});
