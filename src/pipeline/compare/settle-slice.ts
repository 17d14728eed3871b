/**
 * The findings of one slice to their ends:
 *
 *   look (realtime) ─► agree │ listing write │ HEAD ─► agrees │ tombstone (reserved) or live write
 *     ▲                            │                                  │
 *     └──── refused: something newer is stored ◄───────────────────────┘
 *
 * A report looks and confirms, and writes nothing. What is written provisionally says `settled: false` in its document:
 * the sweep of unsettled documents looks again, so nothing needs to be remembered here.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import type { ObjectDocument, PresentState } from '../../domain/documents/document.ts';
import { FaultError } from '../../domain/fault.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { MARGIN_MS } from '../../domain/ordering/constants.ts';
import type { Finding } from '../../domain/reindex/compare.ts';
import type { DifferenceKind } from '../../domain/reindex/counts.ts';
import type { JobMode } from '../../domain/reindex/job.ts';
import { clockOfListing, decideListed, decideSeen, rewrittenDocument } from '../../domain/reindex/decide.ts';
import type { ObservedWrite } from '../../domain/ordering/observation.ts';
import type { WriteRequest } from '../looks/bulk-writer.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { BackgroundWriter } from './background-writer.ts';
import type { Head, Look } from './heads.ts';

/** What became of one finding. */
export interface Ending {
  readonly key: string;
  /** `gone`: the difference went away by itself. */
  readonly kind: DifferenceKind | 'equal' | 'gone';
  readonly fields: readonly string[];
  readonly effect?: 'document' | 'tombstone';
}

export type SliceEnd =
  | { readonly kind: 'ended'; readonly endings: readonly Ending[] }
  /** The brake holds: only what lies before this key came to its end. `waiting`: tombstones that were not granted. */
  | { readonly kind: 'braked'; readonly beforeKey: string; readonly waiting: number; readonly endings: readonly Ending[] }
  /** Answers got too old to be written (rule 9): the listing must be asked again. */
  | { readonly kind: 'expired' };

export interface SliceWork {
  readonly bucket: BucketRecord;
  readonly mode: JobMode;
  readonly fill: boolean;
  /** In key order. */
  readonly findings: readonly Finding[];
  /** D of the listing page. */
  readonly observedAtMs: number;
  readonly expiresAtMs: number;
  /** Resolves when every slice before this one came to its end: tombstones are reserved in key order. */
  readonly turn: () => Promise<void>;
  readonly tombstones: Tombstones;
  /** Told of each HEAD. */
  readonly asked: () => void;
}

/** The tombstones that may still be written. */
export interface Tombstones {
  /** Grants up to so many. */
  reserve(count: number): Promise<number>;
  /** Takes back what was granted and not used. */
  giveBack(count: number): void;
}

export type SettleSlice = (work: SliceWork, signal: AbortSignal) => Promise<SliceEnd>;

interface SettleDependencies {
  readonly objects: ObjectIndex;
  readonly writer: BackgroundWriter;
  readonly head: Head;
  readonly clock: Clock;
}

/**
 * A key whose writes were refused so often is being written by the live path at this very moment, each time by something
 * later than our last look: it is counted as in flight and left to it.
 */
const ROUNDS_MAX = 5;

/** Events are usually here within seconds; what a report waits for them, once for each slice that has such objects. */
const LIVE_LAG_MS = 5_000;

/** A write that a finding leads to, and how the finding ends when it is taken. */
interface Planned {
  readonly finding: Finding;
  readonly request: WriteRequest;
  readonly ending: Ending;
}

type Step = { readonly end: Ending } | { readonly write: Planned };

/** A HEAD decides. `found`: what the listing alone showed. */
interface HeadStep {
  readonly head: Looked;
  readonly found?: Ending;
}

/** Where the brake cut the slice. */
interface Brake {
  readonly beforeKey: string;
  readonly waiting: number;
}

/** Creates the step from findings to endings. It throws the fault that keeps one of them from its end. */
export function createSettleSlice({ objects, writer, head, clock }: SettleDependencies): SettleSlice {
  return async function settleSlice(work, signal) {
    const endings = work.findings.filter((finding) => !needsLook(finding, work)).map((finding) => endingOf(finding, finding.kind));
    let open: readonly Finding[] = work.findings.filter((finding) => needsLook(finding, work));
    let brake: Brake | undefined;
    let isExpired = false;
    for (let round = 1; open.length > 0 && round <= ROUNDS_MAX; round += 1) {
      const steps = work.mode === 'report' ? await patientStepsOf(open, work, signal) : await stepsOf(open, work, signal);
      const planned = steps.flatMap((step) => ('write' in step ? [step.write] : []));
      brake = (await brakeOf(planned, work)) ?? brake;
      const answered = await write(beforeBrake(planned, brake, byFinding), work, signal);
      if (answered.isListingExpired) return { kind: 'expired' };
      endings.push(...steps.flatMap((step) => ('end' in step ? [step.end] : [])), ...answered.endings);
      open = answered.refused;
      isExpired = answered.isLookExpired;
    }
    if (open.length > 0 && isExpired) return { kind: 'expired' };
    endings.push(...open.map((finding) => endingOf(finding, 'inFlight')));
    return brake === undefined ? { kind: 'ended', endings } : { kind: 'braked', ...brake, endings: beforeBrake(endings, brake, byKey) };
  };

  /** What each finding means on what is stored now, in their order. */
  async function stepsOf(findings: readonly Finding[], work: SliceWork, signal: AbortSignal): Promise<readonly Step[]> {
    const keys = findings.map((finding) => finding.key);
    const stored = await objects.getMany(work.bucket.bucket, keys, signal);
    const steps = findings.map((finding, index) => stepOf({ finding, stored: stored[index] }, work));
    // most need no HEAD: a promise for each of them would cost more than its step
    const heads = await Promise.all(steps.filter((step) => 'head' in step).map((step) => stepOfHead(step, work, signal)));
    return steps.map((step) => ('head' in step ? heads.shift() : step)).filter((step) => step !== undefined);
  }

  /** Of a report: an object written a moment ago is no drift for as long as its event may be on its way. */
  async function patientStepsOf(findings: readonly Finding[], work: SliceWork, signal: AbortSignal): Promise<readonly Step[]> {
    const steps = await stepsOf(findings, work, signal);
    const young = findings.filter((finding, index) => isYoungDrift(finding, steps[index], work));
    if (young.length === 0) return steps;
    await clock.sleep(LIVE_LAG_MS, signal);
    const later = await stepsOf(young, work, signal);
    return findings.map((finding, index) => later[young.indexOf(finding)] ?? steps[index]).filter((step) => step !== undefined);
  }

  function stepOf(at: Looked, work: SliceWork): Step | HeadStep {
    const { finding, stored } = at;
    const decision = decideListed(finding.state, stored, clockOfListing(work.observedAtMs));
    switch (decision.kind) {
      case 'gone':
        return { end: endingOf(finding, 'gone') };
      case 'equal':
      case 'incomplete': {
        const ending = endingOf(finding, decision.kind, decision.fields);
        const isWanted = decision.isInexact || (work.fill && decision.kind === 'incomplete');
        return isWanted && !decision.isNewer ? stepOfListing(at, work, ending) : { end: ending };
      }
      case 'missing':
      case 'stale': {
        const ending = endingOf(finding, decision.kind, decision.kind === 'stale' ? decision.fields : undefined);
        // written from the listing, or from a HEAD where the bucket's documents say more than a listing does
        return looksAtContent(work) ? { head: at, found: ending } : stepOfListing(at, work, ending);
      }
      case 'phantom':
        return { head: at };
      case 'inFlight':
        return work.mode === 'report' ? { end: endingOf(finding, 'inFlight', decision.fields) } : { head: at };
    }
  }

  function stepOfListing(looked: Looked, work: SliceWork, ending: Ending): Step {
    const { state } = looked.finding;
    return work.mode === 'report' || state === undefined
      ? { end: ending }
      : { write: writeOfListing(looked, { work, state, ending, nowMs: clock.nowMs() }) };
  }

  /** Confirms a phantom, or looks at a key whose document is as new as the listing or wants more than it. */
  async function stepOfHead({ head: looked, found }: HeadStep, work: SliceWork, signal: AbortSignal): Promise<Step> {
    const { finding, stored } = looked;
    const seen = await head({ bucket: work.bucket, key: finding.key, asked: work.asked }, signal);
    const decision = decideSeen(seen.state, stored, seen.observedAtMs);
    const isUnlisted = finding.state === undefined;
    if (decision.kind === 'agrees') return { end: endingOf(finding, isUnlisted ? 'gone' : 'inFlight') };
    const ending = found ?? endingOf(finding, isUnlisted && !seen.state.present ? 'phantom' : 'inFlight');
    if (work.mode === 'report') return { end: ending };
    return { write: writeOfHead(looked, { work, seen, plan: decision.plan, ending, nowMs: clock.nowMs() }) };
  }

  /** Reserves the tombstones among the writes; tells the first that was not granted. */
  async function brakeOf(planned: readonly Planned[], work: SliceWork): Promise<Brake | undefined> {
    const tombstones = planned.filter(isTombstone);
    if (tombstones.length === 0) return undefined;
    await work.turn();
    const granted = await work.tombstones.reserve(tombstones.length);
    const first = tombstones[granted];
    return first === undefined ? undefined : { beforeKey: first.finding.key, waiting: tombstones.length - granted };
  }

  async function write(planned: readonly Planned[], { tombstones }: SliceWork, signal: AbortSignal): Promise<Written> {
    const requests = planned.map(({ request }) => request);
    const answers = await writer.writeAll(requests, signal);
    const fault = answers.find((answer) => answer.kind === 'fault')?.fault;
    if (fault !== undefined) throw new FaultError(fault.code, fault.reason);
    const isExpired = (source: 'listing' | 'check'): boolean =>
      requests.some(({ document }, index) => document.source === source && answers[index]?.kind === 'expired');
    const refused = planned.filter((_, index) => answers[index]?.kind !== 'written');
    tombstones.giveBack(refused.filter(isTombstone).length);
    return {
      endings: planned.filter((_, index) => answers[index]?.kind === 'written').map(({ ending }) => ending),
      refused: refused.map(({ finding }) => finding),
      isListingExpired: isExpired('listing'),
      isLookExpired: isExpired('check'),
    };
  }
}

interface Written {
  readonly endings: readonly Ending[];
  /** To be looked at again: something newer is stored, or the look got too old to be written. */
  readonly refused: readonly Finding[];
  /** The listing page is too old to be written from. */
  readonly isListingExpired: boolean;
  readonly isLookExpired: boolean;
}

/** Whether other content is written from a HEAD: where the bucket's documents say more than a listing does. */
export function looksAtContent({ bucket, mode }: Pick<SliceWork, 'bucket' | 'mode'>): boolean {
  return mode === 'apply' && bucket.enrich !== 'none';
}

interface Looked {
  readonly finding: Finding;
  readonly stored: ObjectDocument | undefined;
}

function writeOfListing(
  { finding, stored }: Looked,
  {
    work,
    state,
    ending,
    nowMs,
  }: { readonly work: SliceWork; readonly state: PresentState; readonly ending: Ending; readonly nowMs: number },
): Planned {
  const { observedAtMs, expiresAtMs } = work;
  const at = { bucket: work.bucket.bucket, key: finding.key, clock: clockOfListing(observedAtMs), observedAtMs, nowMs };
  const document = rewrittenDocument({ ...at, state, stored, settled: true, source: 'listing' });
  return { finding, request: { document, equalClock: 'accept', expiresAtMs }, ending: { ...ending, effect: 'document' } };
}

interface SeenFacts {
  readonly work: SliceWork;
  readonly seen: Look;
  readonly plan: ObservedWrite;
  readonly ending: Ending;
  readonly nowMs: number;
}

function writeOfHead({ finding, stored }: Looked, { work, seen, plan, ending, nowMs }: SeenFacts): Planned {
  const { clock, settled, equalClock } = plan;
  const at = { bucket: work.bucket.bucket, key: finding.key, clock, observedAtMs: seen.observedAtMs, nowMs };
  const document = rewrittenDocument({ ...at, state: seen.state, stored, settled, source: 'check' });
  const effect = seen.state.present ? 'document' : 'tombstone';
  return { finding, request: { document, equalClock, expiresAtMs: seen.expiresAtMs }, ending: { ...ending, effect } };
}

function isYoungDrift({ state }: Finding, step: Step | undefined, { observedAtMs }: SliceWork): boolean {
  if (step === undefined || !('end' in step) || (step.end.kind !== 'missing' && step.end.kind !== 'stale')) return false;
  return (state?.lastModifiedMs ?? 0) >= observedAtMs - MARGIN_MS;
}

/** What only lacks fields, or the true LastModified, is looked at again only where it is going to be written. */
function needsLook({ kind, isInexact }: Finding, { mode, fill }: SliceWork): boolean {
  switch (kind) {
    case 'missing':
    case 'phantom':
    case 'stale':
      return true;
    case 'equal':
    case 'incomplete':
      return mode === 'apply' && (isInexact || (fill && kind === 'incomplete'));
  }
}

function endingOf({ key, fields }: Finding, kind: Ending['kind'], decided: readonly string[] = fields): Ending {
  return { key, kind, fields: decided };
}

function isTombstone({ ending }: Planned): boolean {
  return ending.effect === 'tombstone';
}

const byFinding = ({ finding }: Planned): string => finding.key;
const byKey = ({ key }: Ending): string => key;

function beforeBrake<Item>(items: readonly Item[], brake: Brake | undefined, keyOf: (item: Item) => string): readonly Item[] {
  return brake === undefined ? items : items.filter((item) => compareKeys(keyOf(item), brake.beforeKey) < 0);
}
