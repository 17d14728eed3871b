/** Why a search does or does not find an object: compares the document with S3's state, and explains the result in one sentence. */
import type { BucketRecord } from '../records/bucket.ts';
import type { BucketStatus } from '../records/bucket-status.ts';
import { clockOfMs, msOfClock, type ObjectDocument, type ObjectState, type PresentState } from '../ordering/document.ts';
import { MARGIN_MS, SETTLE_MS } from '../ordering/constants.ts';
import type { Fault } from '../base/fault.ts';
import { compareStored, isAgreement } from '../ordering/agreement.ts';

/** Events usually arrive within seconds, sometimes minutes. After this time an event is probably lost or stuck. */
const LATE_MS = 300_000;

/** S3's answer: a state with its D, or the fault that prevented the answer. */
export type StorageAnswer = { readonly state: ObjectState; readonly observedAtMs: number } | { readonly fault: Fault };

export interface ExplanationFacts {
  readonly bucket: Pick<BucketRecord, 'bucket' | 'source' | 'floor' | 'createdAtMs'>;
  readonly status: Pick<BucketStatus, 'state' | 'sentence'>;
  readonly document: ObjectDocument | undefined;
  readonly storage: StorageAnswer;
}

export interface Verdict {
  readonly agrees: boolean | 'unknown';
  readonly sentence: string;
  /** What no event that is on its way can explain: the event of S3's object was lost. */
  readonly lost?: 'missing' | 'stale';
}

/** Compares document and state, and explains the result. Every combination has an explanation. */
export function explanationOf({ bucket, status, document, storage }: ExplanationFacts): Verdict {
  if ('fault' in storage) return { agrees: 'unknown', sentence: unknownSentence(document, storage.fault) };
  const { state, observedAtMs } = storage;
  const { kind, fields } = compareStored(state, document);
  if (isAgreement({ kind })) return { agrees: true, sentence: agreementOf(document) };
  const what = disagreementOf({ document, isPresent: state.present, differing: fields.map((field) => field.replaceAll('_', ' ')) });
  const facts = { bucket, status, document, state, observedAtMs };
  const isLost = state.present && isLate(facts, state);
  return {
    agrees: false,
    sentence: `${what}: ${reasonOf(facts)}.`,
    ...(isLost && { lost: document === undefined || document.deleted ? 'missing' : 'stale' }),
  };
}

/** Whether an event of this object would have arrived by now, as far as S3 says when it changed. When an object was removed, S3 does not say. */
function isLate(facts: MismatchFacts, { lastModifiedMs = 0 }: PresentState): boolean {
  const isExplained = documentReason(facts) !== undefined || statusReason(facts) !== undefined;
  return !isExplained && facts.observedAtMs - lastModifiedMs >= LATE_MS;
}

function unknownSentence(document: ObjectDocument | undefined, fault: Fault): string {
  return `${foundness(document)}; whether S3 agrees is unknown, because the request to S3 failed (${fault.code}: ${fault.reason}).`;
}

function foundness(document: ObjectDocument | undefined): string {
  if (document === undefined) return 'A search does not find it, because the index holds nothing for this key';
  if (document.deleted) return `A search does not find it, because the index holds its tombstone as of ${timeOf(document)}`;
  return `A search finds it as it was at ${timeOf(document)}`;
}

function agreementOf(document: ObjectDocument | undefined): string {
  if (document === undefined)
    return 'A search does not find it, which is correct: S3 does not have it and the index holds nothing for this key.';
  if (document.deleted)
    return `A search does not find it, which is correct: S3 does not have it and the index holds its tombstone as of ${timeOf(document)}.`;
  const state = document.settled ? '' : ', provisionally: Tally will check it once more';
  return `A search finds it: the index agrees with S3, as of ${timeOf(document)}${state}.`;
}

interface Disagreement {
  readonly document: ObjectDocument | undefined;
  readonly isPresent: boolean;
  readonly differing: readonly string[];
}

function disagreementOf({ document, isPresent, differing }: Disagreement): string {
  if (!isPresent) return 'A search finds it although S3 no longer has it';
  if (document === undefined) return 'A search does not find it although S3 has it, because the index holds nothing for this key';
  if (document.deleted)
    return `A search does not find it although S3 has it, because the index holds a tombstone as of ${timeOf(document)}`;
  return `A search finds it, but not as S3 has it now (${differing.join(', ')})`;
}

interface MismatchFacts {
  readonly bucket: ExplanationFacts['bucket'];
  readonly status: ExplanationFacts['status'];
  readonly document: ObjectDocument | undefined;
  readonly state: ObjectState;
  readonly observedAtMs: number;
}

/** The most likely cause; causes that are certain come first. */
function reasonOf(facts: MismatchFacts): string {
  return documentReason(facts) ?? statusReason(facts) ?? (facts.state.present ? changeReason(facts, facts.state) : removalReason(facts));
}

/** A cause that keeps every event of the bucket from the index. */
function statusReason({ bucket: { bucket }, status: { state, sentence } }: MismatchFacts): string | undefined {
  switch (state) {
    case 'events_lost':
    case 'events_unproven':
      return `its events are not known to arrive. ${sentence}; \`tally doctor ${bucket}\` says what is missing and what to do`;
    case 'paused':
      return `${sentence}; \`tally bucket resume ${bucket}\` restores it`;
    case 'waiting':
      return sentence;
    case 'deletions_held':
    case 'differs':
    case 'never_compared':
    case 'gap_open':
    case 'overdue':
    case 'degraded':
    case 'unchecked':
    case 'ok':
      return undefined;
  }
}

/** A cause that the document itself shows. */
function documentReason({ document, observedAtMs }: MismatchFacts): string | undefined {
  if (document === undefined) return undefined;
  if (!document.settled) {
    return `the document is provisional, and Tally asks S3 again ${(MARGIN_MS + SETTLE_MS) / 1_000} s after its event of ${timeOf(document)}`;
  }
  if (document.clock > clockOfMs(observedAtMs)) {
    return `the document's clock, ${timeOf(document)}, is later than this answer from S3, so Tally cannot replace the document before that time`;
  }
  if (document.clock > clockOfMs(observedAtMs - MARGIN_MS)) {
    return `the index was updated for a change less than ${MARGIN_MS / 1_000} s ago, and another event may be on its way; try again in a minute`;
  }
  return undefined;
}

/** Why S3's object is missing from the index or differs from its document. */
function changeReason({ bucket, document, observedAtMs }: MismatchFacts, { lastModifiedMs }: PresentState): string {
  if (lastModifiedMs === undefined) return 'the event of its last change was not indexed; a re-index corrects it';
  const changedAt = new Date(lastModifiedMs).toISOString();
  if (document !== undefined && clockOfMs(lastModifiedMs) <= document.clock) {
    return `it was last modified at ${changedAt}, which is not after the document's clock, so this change (an upload that began earlier, or an older version that is current again) did not reach the index; a re-index corrects it`;
  }
  if (lastModifiedMs < bucket.createdAtMs) {
    return `it was last modified at ${changedAt}, before the bucket was connected, so its event was not indexed; a re-index finds it`;
  }
  if (observedAtMs - lastModifiedMs < LATE_MS) {
    return `it was last modified at ${changedAt} and that event has not arrived yet; events take seconds, sometimes minutes`;
  }
  if (clockOfMs(lastModifiedMs) <= bucket.floor) {
    return `it was last modified at ${changedAt}, before the bucket's last re-index began. Unless that still runs, the index should have it: re-index its folder`;
  }
  return `it was last modified at ${changedAt} and that event was lost, dead-lettered or is still waiting in the queue; check \`tally gaps\` and \`tally dead-letters list\`, or re-index`;
}

/** Why a document is found although S3 has removed its object. */
function removalReason({ bucket: { source }, status: { state } }: MismatchFacts): string {
  if (state === 'deletions_held') {
    return `its deletion may be waiting for a person to allow it; \`tally bucket list\` shows the command that allows them`;
  }
  const limits = source === 'routed' ? ' (audit trails report neither lifecycle expirations nor every key of a bulk delete)' : '';
  return `the event of its removal has not arrived yet, or was never sent${limits}; if this persists, re-index`;
}

function timeOf(document: ObjectDocument): string {
  return new Date(msOfClock(document.clock)).toISOString();
}
