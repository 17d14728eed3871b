/**
 * Others write between any two requests of an act, and AWS refuses any of them. Nothing of others is lost, and what is Tally's ends
 * right, or the act ends with a fault that names the matter. One moment is left out: that between the last read of a document
 * and a PUT of it that AWS takes, which no party can see in AWS.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { NotificationEntry } from '../../src/connect/notification.rules.ts';
import type { ObservedRule } from '../../src/connect/plan.rules.ts';
import type { Selectors } from '../../src/connect/trail.rules.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { LETTERS_ARN, MARK, QUEUE_ARN, THEIR_TOPIC, ruleName } from '../support/fakes/aws-parts.ts';
import { startWorld, THEIR_QUEUE, theirStatement, trail, type World } from './world.ts';
import { isLong } from '../support/breadth.ts';

type Source = 'notification' | 'topic' | 'eventbridge' | 'routed';

const TRAIL = trail.arn;

/** The writes that replace a document, each with its read that must come right before. */
const WRITES: Readonly<Record<string, string>> = {
  putNotification: 'notificationOf',
  setQueue: 'queueOf',
  setTopic: 'topicOf',
  putRule: 'ruleOf',
  putTarget: 'ruleOf',
  removeRule: 'ruleOf',
  putSelectors: 'trailOf',
};

/** What AWS and the SDK answer to a request. `effect`: it was done, and the answer was lost. */
const refusals = ['none', 'busy', 'destination', 'throttled', 'silent', 'effect'] as const;
/** What others do at that moment. `seize`: rule and topics become another registry's. */
const foreignActs = ['none', 'notification', 'overlap', 'withdraw', 'queue', 'topic', 'rule', 'trail', 'seize'] as const;

interface Disturbance {
  /** The n-th write, or the n-th request of any kind. */
  readonly at: `write ${number}` | `request ${number}`;
  readonly refusal: (typeof refusals)[number];
  readonly act: (typeof foreignActs)[number];
}

const disturbance: fc.Arbitrary<Disturbance> = fc.record({
  at: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 14 }).map((n): Disturbance['at'] => `write ${n}`) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 90 }).map((n): Disturbance['at'] => `request ${n}`) },
  ),
  refusal: fc.constantFrom(...refusals),
  act: fc.constantFrom(...foreignActs),
});

function refusalOf(call: string, refusal: (typeof refusals)[number]): Error | undefined {
  const isS3 = call.endsWith('otification') || call === 'notificationOf';
  switch (refusal) {
    case 'none':
    case 'effect':
      return undefined;
    case 'busy':
      return call === 'putNotification' ? new RequestError('connect.busy', 'photos: another change of the bucket is under way') : undefined;
    case 'destination':
      return call === 'putNotification' ? new RequestError('connect.destination', 'photos: Unable to validate the following') : undefined;
    case 'throttled':
      return new FaultError(isS3 ? 's3.throttled' : 'connect.unavailable', `${call} photos: SlowDown`);
    case 'silent':
      return new FaultError(isS3 ? 's3.unavailable' : 'connect.unavailable', `${call} photos: TimeoutError`);
  }
}

/** The other teams and their parts, as they must be there in the end. */
function createOthers({ aws, notified }: World, source: Source) {
  const topicArn = THEIR_TOPIC;
  const ownRule = source === 'eventbridge' || source === 'routed' ? ruleName(source) : '';
  const entries: NotificationEntry[] = [];
  let statements: string[] = ['Theirs'];
  let topicStatements: string[] = ['Theirs'];
  let targets: string[] = [];
  const selectors: string[] = ['tally ffffffff finance'];
  let seized: { readonly rule: ObservedRule } | undefined;

  const addStatement = (text: string | undefined, Sid: string): string => {
    const policy = JSON.parse(text ?? '{"Statement":[]}') as { Statement: object[] };
    return JSON.stringify({ ...policy, Statement: [...policy.Statement, { ...theirStatement, Sid }] });
  };
  function addEntry(entry: NotificationEntry): void {
    entries.push(entry);
    aws.parts.notifications.set('photos', { ...notified(), entries: [...notified().entries, entry] });
  }
  function list(): Selectors['list'] {
    const { selectors: present } = aws.parts.trails.get(TRAIL)!;
    if (present.kind !== 'advanced') throw new Error('the trail has other selectors');
    return present.list;
  }
  const sids = (text: string | undefined): string[] =>
    (JSON.parse(text ?? '{"Statement":[]}') as { Statement: { Sid: string }[] }).Statement.map(({ Sid }) => Sid);

  return {
    act(what: Disturbance['act'], number: number): void {
      const id = `theirs-${number}`;
      const entry = { kind: 'queue', id, arn: THEIR_QUEUE, filter: [{ name: 'prefix', value: `${id}/` }] } as const;
      switch (what) {
        case 'none':
          return;
        case 'notification':
          return addEntry({ ...entry, events: ['s3:ObjectTagging:*'] });
        case 'overlap':
          return addEntry({ ...entry, events: ['s3:ObjectCreated:Put'] });
        case 'withdraw': {
          const gone = entries.pop();
          aws.parts.notifications.set('photos', {
            ...notified(),
            entries: notified().entries.filter((each) => each.id !== gone?.id),
          });
          return;
        }
        case 'queue':
          statements = [...statements, id];
          for (const queue of aws.parts.queues.values()) queue.policy = addStatement(queue.policy, id);
          return;
        case 'topic': {
          const topic = aws.parts.topics.get(topicArn);
          if (topic === undefined) return;
          topicStatements = [...topicStatements, id];
          topic.policy = addStatement(topic.policy, id);
          return;
        }
        case 'rule': {
          const rule = aws.parts.rules.get(ownRule);
          if (rule === undefined || seized !== undefined) return;
          targets = [...targets, id];
          aws.parts.rules.set(ownRule, { ...rule, targets: [...rule.targets, { Id: id, Arn: THEIR_QUEUE }] });
          return;
        }
        case 'trail':
          selectors.push(id);
          aws.parts.trails.set(TRAIL, { ...trail, selectors: { kind: 'advanced', list: [...list(), { Name: id, FieldSelectors: [] }] } });
          return;
        case 'seize': {
          const tags = { 'tally:registry': 'e'.repeat(32) };
          const rule = { pattern: '{}', isEnabled: true, targets: [{ Id: 'bucket-queue', Arn: THEIR_QUEUE }], tags };
          aws.parts.rules.set(ownRule, rule);
          aws.parts.topics.set(topicArn, { policy: addStatement(undefined, 'seized'), subscriptions: new Map() });
          seized = { rule };
          targets = [];
          topicStatements = [];
        }
      }
    },
    /** What the others have now, and what they must have. */
    compare(): void {
      const now = notified().entries.filter(({ id }) => id !== MARK);
      expect(now).toEqual(entries);
      for (const arn of [QUEUE_ARN, LETTERS_ARN])
        expect(sids(aws.parts.queues.get(arn)?.policy).filter((sid) => !/^tally-|^OnlyEncrypted/.test(sid))).toEqual(statements);
      expect(list().map(({ Name }) => Name)).toEqual(expect.arrayContaining(selectors));
      if (seized !== undefined) {
        expect(aws.parts.rules.get(ownRule)).toEqual(seized.rule);
        const theirs = sids(aws.parts.topics.get(topicArn)!.policy).filter((sid) => !sid.startsWith('tally-'));
        expect(theirs).toEqual(['seized', ...topicStatements]);
        return;
      }
      expect(aws.parts.rules.get(ownRule)?.targets.map(({ Id }) => Id) ?? []).toEqual(expect.arrayContaining(targets));
      if (topicStatements.length > 0) expect(sids(aws.parts.topics.get(topicArn)?.policy)).toEqual(expect.arrayContaining(topicStatements));
    },
  };
}

async function start(source: Source, disturbances: readonly Disturbance[]) {
  const world = await startWorld({ trailArn: TRAIL });
  const { aws } = world;
  world.populate();
  aws.parts.topics.set(THEIR_TOPIC, { policy: JSON.stringify({ Statement: [theirStatement] }), subscriptions: new Map() });
  world.notify([]);
  aws.parts.trails.set(TRAIL, trail);
  const others = createOthers(world, source);
  const due = new Map(disturbances.map((each) => [each.at, each]));
  const calls: string[] = [];
  let isQuiet = false;
  let written = 0;
  /** What is left for the moment after the request. */
  let after: Disturbance | undefined;
  aws.before = (call, number) => {
    if (number === 0) return;
    const read = WRITES[call];
    // whoever sends it, and however often: what it replaces was read right before
    if (read !== undefined) expect({ call, before: calls.at(-1) }).toEqual({ call, before: read });
    calls.push(call);
    if (read !== undefined) written += 1;
    const found = (read === undefined ? undefined : due.get(`write ${written}`)) ?? due.get(`request ${number}`);
    after = undefined;
    if (isQuiet || found === undefined) return;
    const error = refusalOf(call, found.refusal);
    // a write of others right before one that AWS takes is the moment that no party can see
    if (read === undefined || error !== undefined) others.act(found.act, number);
    else after = found;
    if (error !== undefined) throw error;
  };
  aws.after = (call, number) => {
    if (number === 0 || after === undefined) return;
    const { act, refusal } = after;
    after = undefined;
    others.act(act, number);
    if (refusal === 'effect')
      throw new FaultError(call === 'putNotification' ? 's3.unavailable' : 'connect.unavailable', `${call} photos: TimeoutError`);
  };
  return { world, others, quiet: () => (isQuiet = true) };
}

/** Every act ends, and with an error of ours that names what it is about. */
async function ended(work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error === undefined) return;
  if (error instanceof FaultError) expect(error.message).toContain('photos');
  else if (error instanceof RequestError) {
    expect(error.code).toMatch(/^connect\./);
    expect(error.message).toMatch(/photos|arn:aws/);
  } else throw error;
}

const acts = ['apply', 'pause', 'resume', 'remove'] as const;
/** Each disturbs several requests; four sources play as many. */
const NUM_RUNS = isLong ? 50 : 25;

describe.each(['notification', 'topic', 'eventbridge', 'routed'] as const)(
  'with the source %s, beside others who write at any moment',
  (source) => {
    const { signal } = new AbortController();
    const wish = { source, ...((source === 'topic' || source === 'routed') && { topic_arn: THEIR_TOPIC }) };
    const play = ({ connections, agree }: World, act: (typeof acts)[number]): Promise<unknown> => {
      switch (act) {
        case 'apply':
          return agree(wish);
        case 'pause':
          return connections.pause('photos', signal);
        case 'resume':
          return connections.resume('photos', signal);
        case 'remove':
          return connections.remove('photos', { keepAws: false });
      }
    };
    const history = fc.constantFrom<readonly (typeof acts)[number][]>(
      ['apply'],
      ['apply', 'apply'],
      ['apply', 'pause', 'resume'],
      ['apply', 'remove'],
      ['apply', 'remove', 'apply'],
    );

    it('loses nothing of them, and ends right or says why not', async () => {
      await fc.assert(
        fc.asyncProperty(history, fc.array(disturbance, { maxLength: 6 }), async (played, disturbances) => {
          const { world, others, quiet } = await start(source, disturbances);
          for (const act of played) {
            await ended(play(world, act));
            others.compare();
          }
          quiet();
          // what was interrupted is repeated as the error says
          const last = played.at(-1)!;
          for (let again = 0; again < 3; again += 1) {
            const isPaused = (await world.connection())?.state === 'paused';
            await ended(play(world, last === 'remove' ? last : isPaused ? 'resume' : 'apply'));
          }
          others.compare();
          const plan = await world.plan(wish);
          const isBlocked = plan.findings.some(({ blocks }) => blocks);
          if (last !== 'remove') {
            const isRemoving = (await world.connection())?.state === 'removing';
            expect(isBlocked || isRemoving ? [] : plan.changes).toEqual([]);
          } else expect(JSON.stringify(world.aws.parts.notifications.get('photos'))).not.toContain(MARK);
        }),
        { numRuns: NUM_RUNS },
      );
    }, 120_000);
  },
);
