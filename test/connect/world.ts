/** A connected bucket `photos` and an AWS in memory, whose calls and stored records can be interrupted anywhere. */
import type { ConnectionRequest, ObservedTrail, Plan } from '../../src/connect/plan.rules.ts';
import type { BucketRecord, BucketSource, Connection } from '../../src/records/bucket.ts';
import { markId, markSchema, type DirtyMark } from '../../src/records/dirty.ts';
import type { Finding } from '../../src/connect/finding.rules.ts';
import type { NotificationConfiguration, NotificationEntry } from '../../src/connect/notification.rules.ts';
import { parsePolicy } from '../../src/connect/policy.rules.ts';
import { advancedSelector } from '../../src/connect/trail.rules.ts';
import type { StateStore } from '../../src/store/store.ts';
import type { ApplyOptions } from '../../src/connect/apply.ts';
import type { ConnectionView } from '../../src/registry/contract/connections.ts';
import { omit } from '../../src/base/defined.ts';
import type { Connections } from '../../src/connect/connections.ts';
import { LEASE_MS } from '../../src/store/lease.ts';
import { parseEntry, readRecord, removeRecord, updateRecord, refs } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { ACCOUNT, createFakeAws, connectionsOn, REGION, setUp, THEIR_TOPIC } from '../support/fakes/aws-parts.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createGapReports, noteArrivals } from '../../src/observing/gaps.ts';
import { createCheckConnection } from '../../src/connect/watch.ts';

export const THEIR_QUEUE = `arn:aws:sqs:${REGION}:${ACCOUNT}:their-queue`;

/** What others have configured, beside which Tally's fits. */
export const theirs: readonly NotificationEntry[] = [
  { kind: 'queue', id: 'thumbnails', arn: THEIR_QUEUE, events: ['s3:ObjectTagging:*'], filter: [{ name: 'prefix', value: 'a%20b/' }] },
  { kind: 'function', id: '', arn: `arn:aws:lambda:${REGION}:${ACCOUNT}:function:scan`, events: ['s3:Replication:*'], filter: [] },
];

export const theirStatement = { Sid: 'Theirs', Effect: 'Allow', Principal: { AWS: '*' }, Action: 'sqs:SendMessage', Resource: '*' };

/** A notification by which a topic gets everything. */
export function allTo(arn: string): NotificationEntry {
  const events = ['s3:ObjectCreated:*', 's3:ObjectRemoved:*', 's3:LifecycleExpiration:*'];
  return { kind: 'topic', id: 'all', arn, events, filter: [] };
}

/** A trail that records another bucket. */
export const trail: ObservedTrail = {
  arn: `arn:aws:cloudtrail:${REGION}:${ACCOUNT}:trail/audit`,
  homeRegion: REGION,
  isLogging: true,
  logBucket: 'trail-logs',
  selectors: { kind: 'advanced', list: [advancedSelector({ bucket: 'finance', partition: 'aws', registry: 'f'.repeat(32) })] },
};

/** A request for every source. */
export const requests: readonly (readonly [BucketSource, Partial<ConnectionRequest>])[] = [
  ['notification', {}],
  ['topic', { source: 'topic', topic_arn: THEIR_TOPIC }],
  ['eventbridge', { source: 'eventbridge' }],
  ['routed', { source: 'routed' }],
];

const { signal } = new AbortController();

export type World = Awaited<ReturnType<typeof startWorld>>;

export async function startWorld({
  photos = {},
  ...settings
}: {
  readonly trailArn?: string;
  readonly trailBucket?: string;
  /** Where the bucket `photos` is. Default: where the queues are. */
  readonly photos?: { readonly region?: string; readonly account?: string };
} = {}) {
  const aws = createFakeAws();
  const store = createMemoryStore();
  const clock = createFakeClock();
  const storage = createFakeStorage(clock);
  storage.createBucket('photos', { region: photos.region ?? REGION });
  storage.createBucket('videos', { region: REGION });
  aws.parts.notifications.set('videos', { entries: [], eventBridge: false });
  if (photos.region !== undefined) setUp(aws.parts, photos.region);
  /** Interrupts the writes of records like calls to AWS. */
  const state: StateStore = {
    ...store.state,
    async put(...args) {
      aws.before('state.put', 0);
      const result = await store.state.put(...args);
      aws.after('state.put', 0);
      return result;
    },
  };
  const connections = connectionsOn(aws, { state, storage, clock, ...settings });
  for (const bucket of ['photos', 'videos']) {
    await updateRecord(store.state, refs.bucket(bucket), () => ({
      ...newRecord(bucket, clock.nowMs()),
      ...(bucket === 'photos' && photos),
    }));
  }

  const apply = (request: Partial<ConnectionRequest> = {}, options: ApplyOptions = {}): Promise<ConnectionView> =>
    connections.apply({ bucket: 'photos', ...request }, options);

  /** What the doctor finds, as if the record of the bucket had this change. */
  async function diagnose(change: Partial<BucketRecord> = {}): Promise<readonly Finding[]> {
    return (await connections.diagnose({ ...(await readRecord(store.state, refs.bucket('photos')))!, ...change })).findings;
  }

  return {
    aws,
    clock,
    storage,
    connections,
    state: store.state,
    apply,
    diagnose,
    /** The codes of what the doctor finds, but what it always says of a trail that no settings name. */
    codes: async (change?: Partial<BucketRecord>): Promise<readonly string[]> =>
      (await diagnose(change)).map(({ code }) => code).filter((code) => code !== 'connect.trail-unchecked'),
    async plan(request: Partial<ConnectionRequest> = {}): Promise<Plan> {
      return (await connections.plan({ bucket: 'photos', ...request })).plan;
    },
    /** As a bucket is removed, and connected again without any parts. */
    remove: async (bucket = 'photos', options: Parameters<Connections['remove']>[1] = { keepAws: false }) => {
      const kept = await connections.remove(bucket, options);
      await updateRecord(store.state, refs.bucket(bucket), (record) => record && omit(record, 'connection'));
      return kept;
    },
    pause: () => connections.pause('photos', signal),
    resume: () => connections.resume('photos', signal),
    removeEarlier: () => connections.removeEarlier('photos', signal),
    setBucket: (change: Partial<BucketRecord>, bucket = 'photos') =>
      updateRecord(store.state, refs.bucket(bucket), (record) => record && { ...record, ...change }),
    /** As after the re-index that it asked for. */
    closeGap: (bucket = 'photos') => removeRecord(store.state, markId(bucket)),
    /** What S3 is told to send, and where. */
    notify: (entries: readonly NotificationEntry[], { bucket = 'photos', eventBridge = false } = {}) =>
      void aws.parts.notifications.set(bucket, { entries, eventBridge }),
    notified: (): NotificationConfiguration => {
      const found = aws.parts.notifications.get('photos');
      if (typeof found !== 'object') throw new Error('no configuration');
      return found;
    },
    /** Kills an act at its n-th call of those that match, and repeats it until it ends. Undefined: it was not killed. */
    async killed<Answer>(at: readonly ['before' | 'after', number], act: () => Promise<Answer>, matches?: (call: string) => boolean) {
      const [hook, number] = at;
      aws[hook] = interruptAt(number, matches);
      const isKilled = await act().then(
        () => false,
        () => true,
      );
      aws[hook] = () => undefined;
      if (!isKilled) return undefined;
      // the lease that was taken by a request without an answer is watched from now on
      await act().catch(() => undefined);
      await clock.advance(LEASE_MS);
      return act();
    },
    /** The operations of a daemon with other bucket queues in its settings. */
    receivingFrom: (...queueUrls: readonly string[]): Connections => connectionsOn(aws, { state, storage, clock, ...settings, queueUrls }),
    /** Applies what a person has agreed to. */
    agree: async (request: Partial<ConnectionRequest> = {}): Promise<ConnectionView> => {
      const { plan } = await connections.plan({ bucket: 'photos', ...request });
      return apply(request, { token: plan.token });
    },
    connection: async (bucket = 'photos'): Promise<Connection | undefined> =>
      (await readRecord(store.state, refs.bucket(bucket)))?.connection,
    async gap(bucket = 'photos'): Promise<DirtyMark | undefined> {
      const entry = await store.state.get(markId(bucket));
      return entry && parseEntry(entry, markSchema);
    },
    /** Others have notifications on the bucket, statements in the policy of the queue, and a topic that gets everything. */
    populate(): void {
      aws.parts.notifications.set('photos', { entries: theirs, eventBridge: true });
      for (const queue of aws.parts.queues.values()) {
        const policy = parsePolicy(queue.policy);
        queue.policy = JSON.stringify({ ...policy, Statement: [theirStatement, ...policy.Statement] });
      }
      aws.parts.topics.set(THEIR_TOPIC, {
        policy: JSON.stringify({ Statement: [{ Principal: { Service: 's3.amazonaws.com' } }] }),
        subscriptions: new Map(),
      });
    },
  };
}

/** The record of a bucket that was connected now. */
export function newRecord(bucket: string, nowMs: number): BucketRecord {
  return recordOf(bucket, { region: REGION, versioning: { status: 'never', observedAtMs: nowMs }, createdAtMs: nowMs, checkedAtMs: nowMs });
}

/** Interrupts the n-th of the calls that match, once. */
export function interruptAt(at: number, matches: (call: string) => boolean = () => true): (call: string) => void {
  let count = 0;
  return (call) => {
    if (!matches(call)) return;
    count += 1;
    if (count === at) throw new Error(`killed at ${call}`);
  };
}

/** The same with the check of connections, and with events of `photos` that arrive. */
export async function startWatched() {
  const world = await startWorld();
  const { state, clock, connections } = world;
  const telemetry = createFakeTelemetry();
  const gaps = createGapReports({ state, clock: { ...clock, sleep: async () => undefined }, telemetry });
  const parts = { state, clock, telemetry, connections, gaps };
  const checkConnection = createCheckConnection(parts);
  const record = async () => (await readRecord(state, refs.bucket('photos')))!;
  return {
    ...world,
    ...parts,
    checkConnection,
    record,
    /** The doctor's check, which stores what it finds. */
    check: async () => checkConnection(await record()),
    isProven: async () => (await record()).provenAtMs !== undefined,
    waySinceMs: async () => (await record()).waySinceMs ?? 0,
    /** As at the first event. */
    arrive: async (...families: readonly ('created' | 'removed' | 'other')[]) =>
      noteArrivals({ state, clock }, await record(), families.length === 0 ? ['other'] : families),
  };
}
