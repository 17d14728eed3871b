/** Refuses searches that read fields which documents of an earlier version lack, until the calendar has upgraded all of them: a part of the answer would look like all of it. */
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectMaintenance } from '../ports/object-index.ts';

/** How long it counts that no document was outdated. A worker of an earlier version that still runs writes the old form. */
const CURRENT_MS = 60_000;
/** More buckets than one process is searched for within a minute. A forgotten one is counted again. */
const KNOWN_MAX = 10_000;

/** Throws `index.upgrading` if documents of one of these buckets have an earlier form; undefined: of all buckets. */
export type RequireCurrentForms = (buckets: readonly string[] | undefined, signal?: AbortSignal) => Promise<void>;

/** Creates the check. It counts the documents of a bucket at most once a minute while all are upgraded. */
export function createRequireCurrentForms({
  maintenance,
  clock,
}: {
  readonly maintenance: Pick<ObjectMaintenance, 'forms'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}): RequireCurrentForms {
  const currentUntilMs = new Map<string, number>();

  async function requireOne(bucket: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    // no bucket has an empty name
    const name = bucket ?? '';
    if ((currentUntilMs.get(name) ?? 0) > clock.monotonicMs()) return;
    const { documents, outdated } = await maintenance.forms(bucket, signal);
    if (outdated > 0) {
      const done = Math.max(0, documents - outdated);
      throw new RequestError(
        'index.upgrading',
        `${bucket ?? 'the index'} has ${outdated} documents of an earlier version, which are being upgraded (${done} of ${documents} are done): try again later, or search by words, prefix, key and simple extensions meanwhile`,
        { documents_left: outdated, documents, ...(bucket !== undefined && { bucket }) },
      );
    }
    if (currentUntilMs.size >= KNOWN_MAX) currentUntilMs.clear();
    currentUntilMs.set(name, clock.monotonicMs() + CURRENT_MS);
  }

  return async function requireCurrentForms(buckets, signal) {
    for (const bucket of buckets ?? [undefined]) await requireOne(bucket, signal);
  };
}
