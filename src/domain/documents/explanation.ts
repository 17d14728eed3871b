/** Why a search finds an object or does not: what the index holds beside what S3 says, in one sentence. */
import type { BucketRecord } from '../bucket.ts';
import { clockOfMs, msOfClock } from '../ordering/clock.ts';
import { MARGIN_MS, SETTLE_MS } from '../ordering/constants.ts';
import type { ObjectDocument, ObjectState, PresentState } from './document.ts';
import type { Fault } from '../fault.ts';

/** Events are usually seconds late, sometimes minutes; after this one is no longer merely late. */
const LATE_MS = 300_000;

/** What S3 answered: a state and its D, or the fault that kept it from answering. */
export type StorageAnswer = { readonly state: ObjectState; readonly observedAtMs: number } | { readonly fault: Fault };

export interface ExplanationFacts {
  readonly bucket: Pick<BucketRecord, 'source' | 'floor' | 'createdAtMs'>;
  readonly document: ObjectDocument | undefined;
  readonly storage: StorageAnswer;
}

export interface Verdict {
  readonly agrees: boolean | 'unknown';
  readonly sentence: string;
  /** The clock that an observation made by this look would be written at (D − M). */
  readonly observationClock?: number;
}

/** Compares and explains. Total. */
export function explanationOf({ bucket, document, storage }: ExplanationFacts): Verdict {
  if ('fault' in storage) return { agrees: 'unknown', sentence: unknownSentence(document, storage.fault) };
  const { state, observedAtMs } = storage;
  const observationClock = clockOfMs(observedAtMs - MARGIN_MS);
  const held = document === undefined || document.deleted ? undefined : document;
  const differing = held !== undefined && state.present ? differences(held, state) : [];
  const agrees = (held !== undefined) === state.present && differing.length === 0;
  if (agrees) return { agrees, sentence: agreementOf(document), observationClock };
  const what = disagreementOf({ document, isPresent: state.present, differing });
  const why = reasonOf({ bucket, document, state, observedAtMs });
  return { agrees, sentence: `${what}: ${why}.`, observationClock };
}

/** Fields that both sides state and that are not the same; what one side does not say is no difference. */
function differences(document: ObjectDocument, state: PresentState): readonly string[] {
  const differs = (ours: unknown, theirs: unknown) => ours !== undefined && theirs !== undefined && ours !== theirs;
  const fields = {
    etag: differs(document.etag, state.etag),
    size: differs(document.size, state.sizeBytes),
    'version id': differs(document.version_id, state.versionId),
    'storage class': differs(document.storage_class, state.storageClass),
    'last modified': differs(statedSecond(document), secondOf(state.lastModifiedMs)),
  };
  return Object.entries(fields).flatMap(([name, isDifferent]) => (isDifferent ? [name] : []));
}

/** An event's time stands in for LastModified until a HEAD or a listing told it: that is no difference. */
function statedSecond(document: ObjectDocument): number | undefined {
  if (document.last_modified === undefined || document.last_modified_exact !== true) return undefined;
  return secondOf(Date.parse(document.last_modified));
}

/** HEAD answers whole seconds, LIST milliseconds. */
function secondOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.floor(ms / 1_000);
}

function unknownSentence(document: ObjectDocument | undefined, fault: Fault): string {
  return `${foundness(document)}; whether S3 agrees is not known, since it could not be asked (${fault.code}: ${fault.reason}).`;
}

function foundness(document: ObjectDocument | undefined): string {
  if (document === undefined) return 'A search does not find it, because the index holds nothing of this key';
  if (document.deleted) return `A search does not find it, because the index holds its tombstone as of ${timeOf(document)}`;
  return `A search finds it as it was at ${timeOf(document)}`;
}

function agreementOf(document: ObjectDocument | undefined): string {
  if (document === undefined) return 'A search does not find it, rightly: S3 does not have it and the index holds nothing of this key.';
  if (document.deleted)
    return `A search does not find it, rightly: S3 does not have it and the index holds its tombstone as of ${timeOf(document)}.`;
  const state = document.settled ? '' : ', provisionally: it is looked at once more';
  return `A search finds it: the index says what S3 says, as of ${timeOf(document)}${state}.`;
}

interface Disagreement {
  readonly document: ObjectDocument | undefined;
  readonly isPresent: boolean;
  readonly differing: readonly string[];
}

function disagreementOf({ document, isPresent, differing }: Disagreement): string {
  if (!isPresent) return 'A search finds it although S3 no longer has it';
  if (document === undefined) return 'A search does not find it although S3 has it, because the index holds nothing of this key';
  if (document.deleted)
    return `A search does not find it although S3 has it, because the index holds a tombstone as of ${timeOf(document)}`;
  return `A search finds it, but not as S3 has it now (${differing.join(', ')})`;
}

interface MismatchFacts {
  readonly bucket: ExplanationFacts['bucket'];
  readonly document: ObjectDocument | undefined;
  readonly state: ObjectState;
  readonly observedAtMs: number;
}

/** The likeliest cause, the surest first. */
function reasonOf(facts: MismatchFacts): string {
  return documentReason(facts) ?? (facts.state.present ? changeReason(facts, facts.state) : removalReason(facts.bucket));
}

/** Causes that the document itself tells. */
function documentReason({ document, observedAtMs }: MismatchFacts): string | undefined {
  if (document === undefined) return undefined;
  if (!document.settled) {
    return `what the index holds is provisional and is looked at again ${(MARGIN_MS + SETTLE_MS) / 1_000} s after its event of ${timeOf(document)}`;
  }
  if (document.clock > clockOfMs(observedAtMs)) {
    return `the document's clock, ${timeOf(document)}, is later than this look, so nothing seen now may replace it before then`;
  }
  if (document.clock > clockOfMs(observedAtMs - MARGIN_MS)) {
    return `the index was written for a change less than ${MARGIN_MS / 1_000} s ago, and another event may be on its way; ask again in a minute`;
  }
  return undefined;
}

/** S3 has it, the index has it not or otherwise. */
function changeReason({ bucket, document, observedAtMs }: MismatchFacts, { lastModifiedMs }: PresentState): string {
  if (lastModifiedMs === undefined) return 'no event of its last change has been indexed; a re-index corrects it';
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
    return `it was last modified at ${changedAt}, below the floor of the bucket's last re-index, which has not finished or did not reach it; look at its job`;
  }
  return `it was last modified at ${changedAt} and that event was lost, dead-lettered or still waits in the queue; look at gaps and dead letters, or re-index`;
}

function removalReason({ source }: ExplanationFacts['bucket']): string {
  const untold = source === 'routed' ? ' (audit trails tell neither lifecycle expirations nor every key of a bulk delete)' : '';
  return `the event of its removal has not arrived yet, or was never sent${untold}; if that lasts, re-index`;
}

function timeOf(document: ObjectDocument): string {
  return new Date(msOfClock(document.clock)).toISOString();
}
