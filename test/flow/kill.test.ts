import { describe, expect, test } from 'vitest';
import type { Daemon } from '../support/servers/daemon.ts';
import type { FaultProxy, Interference, PassingRequest } from '../support/servers/fault-proxy.ts';
import type { Flow, IndexKind } from '../support/worlds/flow.ts';
import { indexKinds, openFlow } from '../support/worlds/flow.ts';
import type { QueueWorld } from '../support/worlds/queue.ts';
import { inTurns, isLong } from '../support/breadth.ts';

/** A request of the daemon. */
interface Step {
  readonly name: string;
  readonly proxy: (flow: Flow) => FaultProxy;
  readonly matches: (request: PassingRequest) => boolean;
  /** What is sent then. Default: puts and deletes. */
  readonly load?: (world: QueueWorld) => readonly string[];
}

/** Before the request arrives, or after it was done and before its answer. */
type When = 'before' | 'after';

/** A provisional write is settled some 45 s after it, and a killed daemon's messages come back before that. */
const SETTLE_TIMEOUT_MS = 300_000;

const BAD_BODIES = ['not json at all', '{"Records":[{"eventVersion":"9.0","eventSource":"aws:s3","s3":{}}]}'];

const interferences: Readonly<Record<When, Interference>> = { before: { kind: 'hang' }, after: { kind: 'swallow-answer' } };
const sqs = (flow: Flow): FaultProxy => flow.world.sqs;
const s3 = (flow: Flow): FaultProxy => flow.world.s3;
const index = (flow: Flow): FaultProxy => flow.index;
const operation = (name: string) => (request: PassingRequest) => request.operation === name;
const isBulk = ({ path }: PassingRequest): boolean => path.includes('_bulk');
const isObjectHead = ({ method, path }: PassingRequest): boolean => method === 'HEAD' && path.split('/').length > 2;

const bulk: Step = { name: 'a bulk request', proxy: index, matches: isBulk };

/** First what hides a message, as a look at the dead letters of the others does too. */
const steps: readonly Step[] = [
  { name: 'the message of a provisional write is hidden', proxy: sqs, matches: operation('ChangeMessageVisibilityBatch'), load: upload },
  { name: 'S3 is asked about an object', proxy: s3, matches: isObjectHead },
  { name: 'messages are deleted', proxy: sqs, matches: operation('DeleteMessageBatch') },
  { name: 'a dead letter is sent', proxy: sqs, matches: operation('SendMessage') },
  { name: 'messages are received', proxy: sqs, matches: operation('ReceiveMessage') },
];

/**
 * Kills the daemon at the moment, and lets another one finish: index and bucket agree, and of all that is bad each body is
 * dead-lettered. Resolves with that one.
 */
async function killAt(flow: Flow, victim: Daemon, [step, when]: readonly [Step, When]): Promise<Daemon> {
  const { world } = flow;
  const { proxy, matches, load = putsAndDeletes } = step;
  const name = `${when} ${step.name}`;
  const before = new Set(world.deadLetters().map(({ messageId }) => messageId));
  for (let each = 0; each < 20; each += 1) world.send(world.put(`old/${each}`));
  await flow.converged(victim);

  const moment = proxy(flow).holdAt(interferences[when], matches);
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
const whens: readonly When[] = isLong ? ['before', 'after'] : ['after'];

/** Those of one kind, in turns with the other kind each day. */
function momentsOf(kind: IndexKind): readonly (readonly [Step, When])[] {
  const momentsAt = (all: readonly Step[]) => all.flatMap((step) => whens.map((when) => [step, when] as const));
  const shared = inTurns(momentsAt(steps), indexKinds).flatMap(([moment, each]) => (each === kind ? [moment] : []));
  return kind === 'opensearch' ? [...shared, ...momentsAt([bulk])] : shared;
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
