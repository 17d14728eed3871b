/**
 * Random histories of one key in one bucket: what S3 held when, the messages that its sources sent about it, and what did
 * not answer meanwhile. Everything is drawn from one seed, so that a wrong history can be played again.
 */
import type { BucketSource } from '../../../src/records/bucket.ts';
import { dialectFacts, type ChangeRecord, type Dialect } from '../../../src/events/record.ts';
import { createSimBucket, type Content, type Operation, type VersioningStatus } from './bucket.ts';
import { createRandom, type Random } from '../../support/random/seeded.ts';

/** What the histories of a mix have beside delays, repeats, crashes and reconciles, which all of them have. */
export interface Mix {
  readonly name: string;
  /** `all-told`: each change is told by one source at least. `lossy`: some are told by none, and a reconcile follows. */
  readonly losses: 'all-told' | 'lossy';
  /** `many`: several sources tell of the same changes; some are not the bucket's own, and some of their records are forged. */
  readonly sources: 'one' | 'many';
  /** `changes`: versioning is enabled and suspended on the way, and read now and then. `read-before`: it was read before all events. */
  readonly versioning: 'read-before' | 'changes';
  /** Operations follow each other closely and HEADs wait for their turn, so that many hints share one. */
  readonly bursts: boolean;
  /** S3, the index or the whole store does not answer for a while. */
  readonly outages: boolean;
  /** What waits during an outage may be acknowledged under an open gap instead. */
  readonly handsOver: boolean;
  /** S3's clock is ahead of the clocks of the queues and the workers, or behind them, by up to 15 minutes. */
  readonly skewed: boolean;
}

export interface SimMessage {
  readonly record: ChangeRecord;
  /** By S3's clock, as all times here. */
  readonly sentAtMs: number;
  readonly receivedAtMs: readonly number[];
  /** It has a sequencer, but not the form in which the bucket's source sends S3's own events. */
  readonly isMisfit: boolean;
}

/** What does not answer: S3, the bucket's index, or the whole store with the state records. */
export type Part = 's3' | 'index' | 'cluster';

export interface Outage {
  readonly part: Part;
  /** The one worker that it does not answer; undefined: nobody. */
  readonly worker: number | undefined;
  readonly fromMs: number;
  readonly toMs: number;
}

interface Since<Value> {
  readonly atMs: number;
  readonly value: Value;
}

export interface History {
  readonly mix: Mix;
  readonly source: BucketSource;
  readonly changes: readonly Since<Content>[];
  readonly versioning: readonly Since<VersioningStatus>[];
  readonly messages: readonly SimMessage[];
  readonly outages: readonly Outage[];
  /** How far S3's clock, by which everything here happens, is ahead of the others. */
  readonly s3AheadMs: number;
  readonly endMs: number;
}

export const START_MS = 1_795_000_000_000;
const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;
const GAPS = [1, 1, 40, 40, 400, 400, SECOND, 3 * SECOND, 3 * SECOND, 8 * SECOND, 20 * SECOND, 70 * SECOND, 600 * SECOND, 8 * DAY];
const BURST_GAPS = [1, 40, 400, SECOND, SECOND, 3 * SECOND, 8 * SECOND, 20 * SECOND, 45 * SECOND];
/** Reconciles run between the operations, and outages last over several. */
const SLOW_GAPS = [1, 40, 3 * SECOND, 20 * SECOND, 70 * SECOND, 200 * SECOND, 600 * SECOND];
const SENDING = [5, 5, 300, 300, 2 * SECOND, 2 * SECOND, 20 * SECOND, 20 * SECOND, 200 * SECOND, 200 * SECOND, HOUR, 2 * DAY];
const RECEIVING = [5, 100, 2 * SECOND, 10 * SECOND, 40 * SECOND, 300 * SECOND, 2 * HOUR, 2 * DAY, 14 * DAY];
const BURST_RECEIVING = [5, 100, 2 * SECOND, 2 * SECOND, 10 * SECOND, 10 * SECOND, 40 * SECOND, 300 * SECOND, 2 * HOUR];
/** Long enough that versioning is read between many a delete and its event. */
const READ_BETWEEN = [100, 2 * SECOND, 10 * SECOND, 20 * SECOND, 20 * SECOND, 40 * SECOND, 300 * SECOND, 2 * HOUR];
const OUTAGES = [3 * SECOND, 40 * SECOND, 200 * SECOND, 1_200 * SECOND, 5 * HOUR];

const S3_AHEAD = [0, 20 * SECOND, 50 * SECOND, 70 * SECOND, 600 * SECOND, 900 * SECOND, -70 * SECOND, -900 * SECOND];

const USUALLY_NEVER: readonly VersioningStatus[] = ['never', 'never', 'never', 'never', 'never', 'enabled', 'suspended'];
const IMPLAUSIBLE_SEQUENCER = '0055AED6DCD90281E5';

/** Who tells of a change. Where it is not certainly S3 itself, somebody else could write such records too. */
interface Teller {
  readonly dialect: Dialect;
  readonly throughTopic: boolean;
  readonly isForgeable: boolean;
}

/** Draws a history: 1 to 7 operations, with what its mix adds. */
export function drawHistory(seed: number, mix: Mix): History {
  const random = createRandom(seed);
  const { source, tellers } = drawTellers(random, mix);
  const bucket = createSimBucket(random, {
    status: random.pick(mix.versioning === 'changes' ? USUALLY_NEVER : ['never', 'never', 'enabled', 'suspended']),
    hasTrail: tellers.some(({ dialect }) => hasNoSequencers(dialect)),
    tellsExpirations: tellers.every(({ dialect }) => !hasNoSequencers(dialect)),
  });
  const changes: Since<Content>[] = [{ atMs: 0, value: null }];
  const versioning: Since<VersioningStatus>[] = [{ atMs: 0, value: bucket.status }];
  const messages: SimMessage[] = [];
  const tell = createTelling(random, { mix, tellers, messages });
  let atMs = START_MS;
  for (let index = 0, count = random.integer(1, 7); index < count; index += 1) {
    atMs += random.pick(gapsOf(mix));
    if (mix.versioning === 'changes' && random.chance(0.1)) {
      bucket.setVersioning(bucket.status === 'enabled' ? 'suspended' : 'enabled');
      versioning.push({ atMs, value: bucket.status });
    }
    const operation = bucket.operate(index, atMs);
    if (operation === undefined) continue;
    changes.push({ atMs, value: bucket.content });
    tell(operation, atMs);
    if (mix.sources === 'many' && random.chance(0.2)) forge(random, { tellers, messages, index, atMs });
  }
  const outages = mix.outages ? drawOutages(random, atMs) : [];
  return { mix, source, changes, versioning, messages, outages, s3AheadMs: mix.skewed ? random.pick(S3_AHEAD) : 0, endMs: atMs };
}

function drawTellers(random: Random, mix: Mix): { readonly source: BucketSource; readonly tellers: readonly Teller[] } {
  const source: BucketSource = random.pick(['notification', 'topic', 'topic', 'eventbridge', 'eventbridge', 'routed', 'routed', 'webhook']);
  const own = tellerOf(random, ownDialect(random, source), source);
  if (mix.sources === 'one') return { source, tellers: [own] };
  const others = random.pick([
    ['native'],
    ['eventbridge'],
    ['trail'],
    ['eventbridge', 'synthetic'],
    ['native', 'trail', 'eventbridge'],
    ['webhook'],
  ] as const);
  return { source, tellers: [own, ...others.map((dialect) => tellerOf(random, dialect, source))] };
}

function ownDialect(random: Random, source: BucketSource): Dialect {
  switch (source) {
    case 'notification':
    case 'topic':
      return 'native';
    case 'eventbridge':
      return 'eventbridge';
    case 'routed':
      return random.pick(['trail', 'synthetic']);
    case 'webhook':
      return 'webhook';
  }
}

function tellerOf(random: Random, dialect: Dialect, source: BucketSource): Teller {
  const throughTopic = dialect === 'eventbridge' && random.chance(0.3);
  const isOwn =
    dialect === 'native' ? source === 'notification' || source === 'topic' : dialect !== 'webhook' && dialect === source && !throughTopic;
  return { dialect, throughTopic, isForgeable: !isOwn };
}

interface Telling {
  readonly mix: Mix;
  readonly tellers: readonly Teller[];
  readonly messages: SimMessage[];
}

/** Sequencers rise with the operations of a key, up to 13 s from the truth; event times are theirs within seconds. Those of an expiration are of the midnight before it. */
function createTelling(random: Random, { mix, tellers, messages }: Telling): (operation: Operation, atMs: number) => void {
  let lastSequencerUs = 0;
  /** An emulator's sequencers may only count seconds: ties. */
  const coarse = random.chance(0.15);

  return function tell(operation, atMs) {
    const preciseUs = Math.max(lastSequencerUs + random.integer(1, 5), (atMs + random.integer(-13 * SECOND, 13 * SECOND)) * 1_000);
    const sequencerUs = coarse ? Math.floor(preciseUs / 1_000_000) * 1_000_000 : preciseUs;
    lastSequencerUs = preciseUs;
    const isLost = mix.losses === 'lossy' && random.chance(0.4);
    const believable = operation.change.kind === 'lifecycle-expired' ? (atMs - (operation.lastedMs ?? 0)) * 1_000 : sequencerUs;
    const sequencer = random.chance(mix.bursts ? 0.8 : 0.93) ? sequencerText(believable) : IMPLAUSIBLE_SEQUENCER;
    // one source at least tells of it, any other may lose it
    const certain = random.integer(0, tellers.length - 1);
    tellers.forEach((teller, index) => {
      if (isLost || (index !== certain && random.chance(0.4))) return;
      if (operation.isDenied === true && !hasNoSequencers(teller.dialect)) return;
      const endedMs = atMs - (operation.lastedMs ?? 0);
      const eventTimeMs = hasNoSequencers(teller.dialect)
        ? Math.floor(endedMs / SECOND) * SECOND
        : endedMs + random.integer(-SECOND, SECOND);
      const record = recordOf(teller, operation, { eventTimeMs, sequencer });
      send(random, messages, { atMs, mix, record, teller });
    });
  };
}

function recordOf(
  { dialect, throughTopic }: Teller,
  said: Pick<Operation, 'change' | 'name' | 'etag' | 'versionId'>,
  { eventTimeMs, sequencer }: { readonly eventTimeMs: number; readonly sequencer: string },
): ChangeRecord {
  // field by field: of all that a history costs, spreading optional fields would cost most
  const record: Writable<ChangeRecord> = {
    dialect,
    bucket: 'b',
    key: 'k',
    eventName: said.name,
    change: said.change,
  };
  if (dialect !== 'webhook') record.eventTimeMs = eventTimeMs;
  if (!hasNoSequencers(dialect)) {
    record.sequencer = sequencer;
    if (said.etag !== undefined) record.etag = said.etag;
    if (said.etag !== undefined) record.sizeBytes = 1;
  }
  if (said.versionId !== undefined && dialect !== 'webhook') record.versionId = said.versionId;
  if (throughTopic) record.throughTopic = throughTopic;
  return record;
}

type Writable<Value> = { -readonly [Field in keyof Value]: Value[Field] };

function send(
  random: Random,
  messages: SimMessage[],
  { record, atMs, mix, teller }: { readonly record: ChangeRecord; readonly atMs: number; readonly mix?: Mix; readonly teller: Teller },
): void {
  const sentAtMs = atMs + random.pick(SENDING);
  const repeats = random.chance(0.3) ? 2 : 1;
  const delays = delaysOf(mix);
  const receivedAtMs = [sentAtMs + random.pick(delays)];
  if (repeats === 2) receivedAtMs.push(sentAtMs + random.pick(delays));
  messages.push({ record, sentAtMs, receivedAtMs, isMisfit: teller.isForgeable && !hasNoSequencers(teller.dialect) });
}

function gapsOf(mix: Mix): readonly number[] {
  if (mix.bursts) return BURST_GAPS;
  return mix.handsOver ? SLOW_GAPS : GAPS;
}

function delaysOf(mix: Mix | undefined): readonly number[] {
  if (mix?.versioning === 'changes') return READ_BETWEEN;
  return mix?.bursts === true ? BURST_RECEIVING : RECEIVING;
}

/** A record that S3 did not write: of an object that never was, or of a delete. */
function forge(
  random: Random,
  { tellers, messages, index, atMs }: Pick<Telling, 'tellers' | 'messages'> & { readonly index: number; readonly atMs: number },
): void {
  const forgeable = tellers.filter(({ isForgeable }) => isForgeable);
  if (forgeable.length === 0) return;
  const aheadMs = random.pick([-600 * SECOND, 0, 5 * SECOND, 50 * SECOND, DAY, 400 * DAY]);
  const eventTimeMs = atMs + aheadMs;
  const sequencer = sequencerText(eventTimeMs * 1_000);
  const kind = random.pick(['created', 'deleted', 'marker-created'] as const);
  const change = kind === 'created' ? ({ kind, copied: false } as const) : { kind };
  const etag = kind === 'created' ? { etag: `forged${index}` } : {};
  const teller = random.pick(forgeable);
  send(random, messages, { atMs, teller, record: recordOf(teller, { change, name: 'forged', ...etag }, { eventTimeMs, sequencer }) });
}

/** One or two outages, anywhere from before the first event to long after the last. */
function drawOutages(random: Random, endMs: number): readonly Outage[] {
  return Array.from({ length: random.integer(1, 2) }, () => {
    const fromMs = START_MS + random.integer(-20 * SECOND, endMs - START_MS + random.pick([60, 600]) * SECOND);
    const worker = random.chance(0.6) ? random.pick([0, 0, 1, 2]) : undefined;
    return { part: random.pick(['s3', 's3', 'index', 'cluster'] as const), worker, fromMs, toMs: fromMs + random.pick(OUTAGES) };
  });
}

function hasNoSequencers(dialect: Dialect): boolean {
  return !dialectFacts[dialect].hasSequencers;
}

/** The sequencer in S3's own form. */
function sequencerText(clockUs: number): string {
  const seconds = Math.floor(clockUs / 1_000_000);
  // the fraction rounded up, so that reading it back gives the same microsecond
  const fraction = Math.min(4_294_967_295, Math.ceil(((clockUs % 1_000_000) * 4_294_967_296) / 1_000_000));
  return `00${seconds.toString(16).toUpperCase().padStart(8, '0')}${fraction.toString(16).toUpperCase().padStart(8, '0')}`;
}
