/** How findings end: the endings that slices are settled with. */
import type { ObjectState } from '../../domain/documents/document.ts';
import { msOfClock } from '../../domain/ordering/clock.ts';
import type { Comparison, Finding } from '../../domain/reindex/compare.ts';
import { readsTags } from './content-reads.ts';
import type { Ending, Looked, SliceWork } from './settle-slice.ts';

/** The ending of a finding of which nothing more is looked at. */
export function endingAsFound(finding: Finding): Ending {
  const { unenriched } = finding;
  return unenriched === undefined ? endingOf(finding, finding.kind) : { ...endingOf(finding, finding.kind), unenriched };
}

/** The ending of a finding that turned out to be of this kind. */
export function endingOf({ key, fields, state }: Finding, kind: Ending['kind'], decided: readonly string[] = fields): Ending {
  return { key, kind, fields: decided, isListed: state !== undefined };
}

/** The ending of a key on which S3 and the stored document differ. */
export function endingOfSeen(finding: Finding, seen: ObjectState): Ending {
  return endingOf(finding, finding.state === undefined && !seen.present ? 'phantom' : 'inFlight');
}

/**
 * How the finding ends if its document has other tags than the object, or lacks them and they are not filled in; undefined if
 * they agree or were not wanted.
 */
export function tagsEnding(
  finding: Finding,
  { kind, fields }: Comparison,
  { work, isFilled }: { readonly work: SliceWork; readonly isFilled: boolean },
): Ending | undefined {
  if (!readsTags(work) || !fields.includes('tags') || (isFilled && kind === 'incomplete')) return undefined;
  return endingOf(finding, kind, ['tags']);
}

/** The ending with the time before which both sides agreed: the document was right at its clock, and the object did not exist before LastModified. */
export function dated(ending: Ending, { finding: { state }, stored }: Looked): Ending {
  const notBeforeMs = Math.max(stored === undefined ? 0 : msOfClock(stored.clock), state?.lastModifiedMs ?? 0);
  return notBeforeMs === 0 ? ending : { ...ending, notBeforeMs };
}
