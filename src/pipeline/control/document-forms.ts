/** Refuses searches that read fields which documents of an earlier version lack, until the calendar has upgraded all of them: a part of the answer would look like all of it. */
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectMaintenance } from '../ports/object-index.ts';

/** How long it counts that no document was outdated. A worker of an earlier version that still runs writes the old form. */
const CURRENT_MS = 60_000;
/** How long a count of outdated documents counts: of millions it takes a second, in which a process with a SQLite index does nothing else. */
const OUTDATED_MS = 5_000;
/** More buckets than one process is searched for within a minute. A forgotten one is counted again. */
const KNOWN_MAX = 10_000;

/** Throws `index.upgrading` if documents of one of these buckets have an earlier form; undefined: of all buckets. */
export type RequireCurrentForms = (buckets: readonly string[] | undefined, signal?: AbortSignal) => Promise<void>;

/** Creates the check. It counts the documents of a bucket at most once a minute while all are upgraded, and every five seconds while they are not. */
export function createRequireCurrentForms({
  maintenance,
  clock,
}: {
  readonly maintenance: Pick<ObjectMaintenance, 'forms'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}): RequireCurrentForms {
  const known = new Map<string, { readonly untilMs: number; readonly refusal?: RequestError }>();

  async function requireOne(bucket: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    // no bucket has an empty name
    const name = bucket ?? '';
    const last = known.get(name);
    if (last === undefined || last.untilMs <= clock.monotonicMs()) known.delete(name);
    else if (last.refusal === undefined) return;
    else throw last.refusal;
    const { documents, outdated } = await maintenance.forms(bucket, signal);
    if (known.size >= KNOWN_MAX) known.clear();
    if (outdated === 0) {
      known.set(name, { untilMs: clock.monotonicMs() + CURRENT_MS });
      return;
    }
    const done = Math.max(0, documents - outdated);
    const refusal = new RequestError(
      'index.upgrading',
      `${bucket ?? 'the index'} has ${outdated} documents of an earlier version, which are being upgraded (${done} of ${documents} are done): try again later, or search by words, prefix, key and simple extensions meanwhile`,
      { documents_left: outdated, documents, ...(bucket !== undefined && { bucket }) },
    );
    known.set(name, { untilMs: clock.monotonicMs() + OUTDATED_MS, refusal });
    throw refusal;
  }

  return async function requireCurrentForms(buckets, signal) {
    for (const bucket of buckets ?? [undefined]) await requireOne(bucket, signal);
  };
}
