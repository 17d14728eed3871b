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
import type { ObjectDocument, PresentState } from '../../domain/document.ts';
import { FaultError } from '../../domain/fault.ts';
import { compareKeys } from '../../domain/key-order.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import type { Finding } from '../../domain/reindex/compare.ts';
import type { DifferenceKind } from '../../domain/reindex/counts.ts';
import { clockOfListing, decideListed, decideSeen, rewrittenDocument } from '../../domain/reindex/decide.ts';
import type { ObservedWrite } from '../../domain/ordering/observation.ts';
import type { WriteRequest } from '../ingest/bulk-writer.ts';
import type { Clock, ObjectIndex, Observation } from '../ports.ts';
import type { BackgroundWriter } from './background-writer.ts';
import type { Head } from './heads.ts';

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
  readonly isReport: boolean;
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

/** A write that a finding leads to, and how the finding ends when it is taken. */
interface Planned {
  readonly finding: Finding;
  readonly request: WriteRequest;
  readonly ending: Ending;
}

type Step = { readonly end: Ending } | { readonly write: Planned };

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
    for (let round = 1; open.length > 0; round += 1) {
      if (round > ROUNDS_MAX) {
        endings.push(...open.map((finding) => endingOf(finding, 'inFlight')));
        break;
      }
      const steps = await stepsOf(open, work, signal);
      const planned = steps.flatMap((step) => ('write' in step ? [step.write] : []));
      brake = (await brakeOf(planned, work)) ?? brake;
      const answered = await write(beforeBrake(planned, brake, byFinding), work, signal);
      if (answered === 'expired') return { kind: 'expired' };
      endings.push(...steps.flatMap((step) => ('end' in step ? [step.end] : [])), ...answered.endings);
      open = answered.refused;
    }
    return brake === undefined ? { kind: 'ended', endings } : { kind: 'braked', ...brake, endings: beforeBrake(endings, brake, byKey) };
  };

  /** What each finding means on what is stored now. */
  async function stepsOf(findings: readonly Finding[], work: SliceWork, signal: AbortSignal): Promise<readonly Step[]> {
    const keys = findings.map((finding) => finding.key);
    const stored = await objects.getMany(work.bucket.bucket, keys, signal);
    return Promise.all(findings.map((finding, index) => stepOf({ finding, stored: stored[index] }, work, signal)));
  }

  async function stepOf(at: Looked, work: SliceWork, signal: AbortSignal): Promise<Step> {
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
        return stepOfContent(at, work, { ending: endingOf(finding, 'missing'), signal });
      case 'stale':
        return stepOfContent(at, work, { ending: endingOf(finding, 'stale', decision.fields), signal });
      case 'phantom':
        return stepOfHead(at, work, { signal });
      case 'inFlight':
        return work.isReport ? { end: endingOf(finding, 'inFlight', decision.fields) } : stepOfHead(at, work, { signal });
    }
  }

  function stepOfListing(looked: Looked, work: SliceWork, ending: Ending): Step {
    const { state } = looked.finding;
    return work.isReport || state === undefined
      ? { end: ending }
      : { write: writeOfListing(looked, { work, state, ending, nowMs: clock.nowMs() }) };
  }

  /** Other content: written from the listing, or from a HEAD where the bucket's documents say more than a listing does. */
  async function stepOfContent(
    looked: Looked,
    work: SliceWork,
    { ending, signal }: { readonly ending: Ending; readonly signal: AbortSignal },
  ): Promise<Step> {
    const isEnriched = work.bucket.enrich !== 'none';
    return isEnriched && !work.isReport ? stepOfHead(looked, work, { signal, ending }) : stepOfListing(looked, work, ending);
  }

  /** Confirms a phantom, or looks at a key whose document is as new as the listing or wants more than it. `found`: what the listing alone showed. */
  async function stepOfHead(
    looked: Looked,
    work: SliceWork,
    { signal, ending: found }: { readonly signal: AbortSignal; readonly ending?: Ending },
  ): Promise<Step> {
    const { finding, stored } = looked;
    // as of a live event's look: its life is counted from before it was asked for
    const expiresAtMs = clock.monotonicMs() + ANSWER_LIFE_MS;
    const seen = await head({ bucket: work.bucket, key: finding.key, asked: work.asked }, signal);
    const decision = decideSeen(seen.state, stored, seen.observedAtMs);
    const isUnlisted = finding.state === undefined;
    if (decision.kind === 'agrees') return { end: endingOf(finding, isUnlisted ? 'gone' : 'inFlight') };
    const ending = found ?? endingOf(finding, isUnlisted && !seen.state.present ? 'phantom' : 'inFlight');
    if (work.isReport) return { end: ending };
    return { write: writeOfHead(looked, { work, seen, plan: decision.plan, ending, expiresAtMs, nowMs: clock.nowMs() }) };
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

  async function write(
    planned: readonly Planned[],
    { tombstones }: SliceWork,
    signal: AbortSignal,
  ): Promise<'expired' | { readonly endings: readonly Ending[]; readonly refused: readonly Finding[] }> {
    const answers = await writer.writeAll(
      planned.map(({ request }) => request),
      signal,
    );
    const endings: Ending[] = [];
    const refused: Planned[] = [];
    let isExpired = false;
    planned.forEach((each, index) => {
      const answer = answers[index];
      if (answer?.kind === 'fault') throw new FaultError(answer.fault.code, answer.fault.reason);
      if (answer?.kind === 'expired') isExpired = true;
      if (answer?.kind === 'written') endings.push(each.ending);
      else refused.push(each);
    });
    tombstones.giveBack(refused.filter(isTombstone).length);
    return isExpired ? 'expired' : { endings, refused: refused.map(({ finding }) => finding) };
  }
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
  readonly seen: Observation;
  readonly plan: ObservedWrite;
  readonly ending: Ending;
  readonly expiresAtMs: number;
  readonly nowMs: number;
}

function writeOfHead({ finding, stored }: Looked, { work, seen, plan, ending, expiresAtMs, nowMs }: SeenFacts): Planned {
  const { clock, settled, equalClock } = plan;
  const at = { bucket: work.bucket.bucket, key: finding.key, clock, observedAtMs: seen.observedAtMs, nowMs };
  const document = rewrittenDocument({ ...at, state: seen.state, stored, settled, source: 'check' });
  const effect = seen.state.present ? 'document' : 'tombstone';
  return { finding, request: { document, equalClock, expiresAtMs }, ending: { ...ending, effect } };
}

/** What only lacks fields, or the true LastModified, is looked at again only where it is going to be written. */
function needsLook({ kind, isInexact }: Finding, { isReport, fill }: SliceWork): boolean {
  switch (kind) {
    case 'missing':
    case 'phantom':
    case 'stale':
      return true;
    case 'equal':
    case 'incomplete':
      return !isReport && (isInexact || (fill && kind === 'incomplete'));
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
