/** The mixes of histories that are played, and the mutants: the product's rules with one of them switched off. */
import { clockOfMs } from '../../../src/ordering/document.ts';
import { MARGIN_MS } from '../../../src/ordering/constants.ts';
import { hintOf, sequencerClock } from '../../../src/ordering/hint.ts';
import { planObservedWrite } from '../../../src/ordering/observation.ts';
import type { Mix } from './history.ts';
import type { Rules } from './rules.ts';

const plain = {
  losses: 'all-told',
  sources: 'one',
  versioning: 'read-before',
  bursts: false,
  outages: false,
  handsOver: false,
  skewed: false,
} as const;

export const mixes = {
  delays: { ...plain, name: 'delays and repeats' },
  losses: { ...plain, name: 'lost events, then a reconcile', losses: 'lossy' },
  joined: { ...plain, name: 'joined observations', bursts: true },
  sources: { ...plain, name: 'several sources, forged records', sources: 'many', bursts: true },
  deletes: { ...plain, name: 'exact deletes, versioning changes', versioning: 'changes' },
  outages: { ...plain, name: 'outages that hold answers back', outages: true, bursts: true },
  handedOver: { ...plain, name: 'outages, then handed over under gaps', outages: true, handsOver: true },
  skewed: { ...plain, name: 'S3’s clock is wrong by up to 15 minutes', bursts: true, skewed: true },
  all: {
    name: 'everything together, and lost events',
    losses: 'lossy',
    sources: 'many',
    versioning: 'changes',
    bursts: true,
    outages: true,
    handsOver: true,
    skewed: true,
  },
} as const satisfies Readonly<Record<string, Mix>>;

export type MixId = keyof typeof mixes;

/** A rule that is switched off, and the mix whose histories show that it is needed. */
export interface Mutant {
  readonly without: string;
  readonly mix: MixId;
  readonly rules: Partial<Rules>;
  /** The first seed to try, shortly before one whose history goes wrong. Where few histories do, a search from 1 takes seconds. */
  readonly from?: number;
}

export const mutants: readonly Mutant[] = [
  { without: 'S, the settle time (rule 4)', mix: 'delays', rules: { plan: settlesAtOnce } },
  { without: 'the floor (rule 8)', mix: 'losses', rules: { floor: false } },
  { without: 'the life P of answers (rule 9)', mix: 'losses', rules: { answerLifeMs: 240_000 } },
  { without: 'a refused provisional write stays provisional (rule 2)', mix: 'delays', rules: { refusedProvisionalStays: false } },
  { without: 'a tombstone is purged by its own clock (rule 1)', mix: 'delays', rules: { purgesByClock: false }, from: 5_800 },
  {
    without: 'a multipart completion is not exact (rule 3)',
    mix: 'delays',
    rules: { hintOf: trusting('multipart-completed') },
    from: 4_600,
  },
  { without: 'an expiration is not exact (rule 3)', mix: 'delays', rules: { hintOf: trusting('lifecycle-expired') } },
  { without: 'a delete is not exact where versioning was enabled (rule 3)', mix: 'delays', rules: { hintOf: trusting('deleted') } },
  {
    without: 'versioning must have been read after a delete (rule 3)',
    mix: 'deletes',
    rules: {
      hintOf: (record, { versioning, ...bucket }, times) =>
        hintOf(record, { ...bucket, versioning: { ...versioning, observedAtMs: Infinity } }, times),
    },
    from: 3_850,
  },
  { without: 'an implausible sequencer is not believed (rule 3)', mix: 'delays', rules: { hintOf: believesEverySequencer } },
  { without: 'an event of yesterday is not exact (rule 3)', mix: 'delays', rules: { hintOf: believesOldEvents } },
  { without: 'a dialect that does not fit its source is not believed (rule 3)', mix: 'sources', rules: { hintOf: believesEverySource } },
  { without: 'inexact sources are observed, not believed (rule 7)', mix: 'delays', rules: { hintOf: trustsTrails } },
  { without: 'nothing comes from the future (rule 10)', mix: 'sources', rules: { hintOf: believesTheFuture } },
  { without: 'an event from the future counts by S3’s clock (rule 10)', mix: 'skewed', rules: { plan: forgetsTheFuture } },
  {
    without: 'what S3’s clock is ahead is added to the time of sending (rule 10)',
    mix: 'skewed',
    rules: { hintOf: knowsNoSkew },
    from: 7_800,
  },
  { without: 'a hint never joins a HEAD that was sent (rule 11)', mix: 'joined', rules: { joinsBeforeHead: false }, from: 3_500 },
  { without: 'each hint keeps its own settle condition (rule 11)', mix: 'sources', rules: { plan: settlesTogether }, from: 6_800 },
  { without: 'joined hints are written at the highest clock (rule 11)', mix: 'joined', rules: { plan: writesAtLowestClock } },
  { without: 'a tie is not an order (rule 12)', mix: 'delays', rules: { ties: false } },
  { without: 'what waits holds no answer', mix: 'all', rules: { waitsWithoutAnswer: false }, from: 38_350 },
  { without: 'a gap stands only for records that it reaches beyond', mix: 'handedOver', rules: { mayHandOver: () => true }, from: 20_200 },
];

/** Every observation is taken as settled. */
function settlesAtOnce(...[hints, observedAtMs]: Parameters<Rules['plan']>): ReturnType<Rules['plan']> {
  const plan = planObservedWrite(hints, observedAtMs);
  if (plan.settled) return plan;
  return { ...plan, clock: clockOfMs(observedAtMs - MARGIN_MS), settled: true, verdicts: plan.verdicts.map(() => ({ final: true })) };
}

/** The time of an event from the future is never believed, whatever S3's clock says. */
function forgetsTheFuture(...[hints, observedAtMs]: Parameters<Rules['plan']>): ReturnType<Rules['plan']> {
  const forgotten = hints.map((hint) => (hint.kind === 'observe' ? { ...hint, settleFromMs: hint.clock / 1_000 } : hint));
  return planObservedWrite(
    forgotten.map((hint) => {
      if (hint.kind === 'resolve') return hint;
      const { futureMs: _, ...rest } = hint;
      return rest;
    }),
    observedAtMs,
  );
}

/** The clock of S3 is taken for that of SQS. */
function knowsNoSkew(...[record, known, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  const { s3AheadMs: _, ...bucket } = known;
  return hintOf(record, bucket, times);
}

/** All hints that share an observation are final as soon as one is. */
function settlesTogether(...[hints, observedAtMs]: Parameters<Rules['plan']>): ReturnType<Rules['plan']> {
  const plan = planObservedWrite(hints, observedAtMs);
  const final = plan.verdicts.find((verdict) => verdict.final);
  return final === undefined ? plan : { ...plan, settled: true, verdicts: plan.verdicts.map(() => final) };
}

function writesAtLowestClock(...[hints, observedAtMs]: Parameters<Rules['plan']>): ReturnType<Rules['plan']> {
  const plan = planObservedWrite(hints, observedAtMs);
  return { ...plan, clock: Math.min(...hints.map((hint) => planObservedWrite([hint], observedAtMs).clock)) };
}

/** Takes one kind of native event for exact whenever its sequencer is plausible. */
function trusting(kind: string): Rules['hintOf'] {
  return (record, bucket, times) => {
    if (record.change.kind !== kind || record.sequencer === undefined) return hintOf(record, bucket, times);
    const created = { ...record, change: { kind: 'created', copied: false } as const, etag: record.etag ?? '', sizeBytes: 1 };
    const hint = hintOf(created, bucket, times);
    if (hint.kind !== 'exact') return hint;
    return kind === 'multipart-completed' ? hint : { ...hint, state: { present: false } };
  };
}

function believesEverySequencer(...[record, bucket, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  const clock = record.sequencer === undefined ? undefined : sequencerClock(record.sequencer);
  const hint = hintOf(record, bucket, times);
  if (clock === undefined || hint.kind !== 'observe' || record.change.kind !== 'created' || record.etag === undefined) return hint;
  return { kind: 'exact', clock, state: { present: true, etag: record.etag, sizeBytes: 1 } };
}

function believesOldEvents(...[record, bucket, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  const now = record.eventTimeMs ?? times.nowMs;
  return hintOf(record, bucket, { sentAtMs: Math.min(times.sentAtMs, now + 1_000), nowMs: now });
}

function believesEverySource(...[record, bucket, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  const { throughTopic: _, ...told } = record;
  const source = record.dialect === 'native' ? 'notification' : 'eventbridge';
  return hintOf(told, record.dialect === 'native' || record.dialect === 'eventbridge' ? { ...bucket, source } : bucket, times);
}

function believesTheFuture(...[record, bucket, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  return hintOf(record, bucket, { ...times, sentAtMs: Math.max(times.sentAtMs, record.eventTimeMs ?? 0) });
}

/** Takes an audit trail's delete for a delete: a denied call looks the same. */
function trustsTrails(...[record, bucket, times]: Parameters<Rules['hintOf']>): ReturnType<Rules['hintOf']> {
  const hint = hintOf(record, bucket, times);
  if (hint.kind !== 'observe' || record.sequencer !== undefined || record.change.kind !== 'deleted') return hint;
  return { kind: 'exact', clock: hint.clock, state: { present: false } };
}
