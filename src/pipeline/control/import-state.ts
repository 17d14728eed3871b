/**
 * Writes an export into an empty store. The index there has nothing yet, so every bucket gets the gap of a bucket that was never
 * compared, before its record: the workers re-index all of it.
 *
 *   the store is prepared ──► nothing foreign is in it ──► audit ──► gaps and records
 *                                   └── `state.conflict`, and nothing was written
 *
 * An import that was interrupted is repeated: what it has written already counts as written.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Context } from '../../api/contract.ts';
import { policySchema } from '../../domain/access/policy.ts';
import { bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import { keyRecordSchema, userKeysSchema } from '../../domain/identity/api-key.ts';
import { appointmentNameOf, appointmentSchema } from '../../domain/identity/appointment.ts';
import { userRecordSchema } from '../../domain/identity/user.ts';
import { connectionSchema, installationSchema } from '../../domain/provisioning/connection.ts';
import { lastBeginOf } from '../../domain/reindex/covers.ts';
import { RequestError } from '../../domain/request-error.ts';
import { growthRecordSchema } from '../../domain/series/growth.ts';
import { exportedKinds, type ExportedKind, type ExportedRecord } from '../../domain/state-export.ts';
import { openNeverCompared } from '../gaps/connection-gaps.ts';
import { createAudited } from '../identity/audited.ts';
import type { Store } from '../ports/store.ts';
import { refs, pagesOf } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

interface ImportDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly store: Pick<Store, 'state' | 'objects' | 'audit' | 'setup'>;
}

/** Imports the records of an export, and resolves with how many were written. */
export type ImportState = (records: readonly ExportedRecord[], context: Context) => Promise<number>;

/** Jobs begin by the clock of S3, which has whole seconds and is not that of this machine. */
const CLOCK_SLACK_MS = 5_000;

/** Creates the function. It throws `request.invalid` for a record that this version cannot read, `state.conflict` for a store that is not empty, `audit.unavailable`, and the store's faults. */
export function createImportState({ store, clock, telemetry }: ImportDependencies): ImportState {
  const { state, objects, audit, setup } = store;
  const audited = createAudited({ audit, clock, telemetry });

  async function write(records: readonly ExportedRecord[], signal: AbortSignal): Promise<number> {
    let written = 0;
    for (const entry of records) {
      signal.throwIfAborted();
      if (entry.kind === 'bucket') await prepareBucket(bucketRecordSchema.parse(entry.record), signal);
      const answer = await state.put(entry, null, signal);
      if (answer !== 'conflict') written += 1;
    }
    return written;
  }

  /** The gap is stored before the record, so that no crash leaves a bucket without it. */
  async function prepareBucket(record: BucketRecord, signal: AbortSignal): Promise<void> {
    const { bucket, enrich } = record;
    await objects.createBucket(bucket, signal);
    const first = { bucket, enrich, seenAtMs: clock.nowMs() - CLOCK_SLACK_MS, afterBeginOrder: lastBeginOf(record), isHeld: false };
    await openNeverCompared({ state, clock }, first, 'before');
  }

  async function requireEmpty(records: readonly ExportedRecord[], signal: AbortSignal): Promise<void> {
    const byId = new Map(records.map((entry) => [entry.id, entry.record]));
    for (const kind of exportedKinds) {
      for await (const stored of pagesOf(state, kind, { signal })) {
        const foreign = stored.find(({ id, record }) => !isDeepStrictEqual(byId.get(id), record));
        if (foreign !== undefined)
          throw new RequestError(
            'state.conflict',
            `the store is not empty: it has the record ${foreign.id}, which the export does not have in this form. Import into a new index file or prefix`,
          );
      }
    }
  }

  return async function importState(exported, context) {
    const records = exported.map(restored);
    await setup.prepare(context.signal);
    await requireEmpty(records, context.signal);
    const act = audited(
      'StateImport',
      (_request: { readonly body: { readonly records: number } }, { signal }) => write(records, signal),
      (written) => ({ written }),
    );
    return act({ body: { records: records.length } }, context);
  };
}

/** How a record of each kind is read, and the id that it must have. */
const kinds: Readonly<Record<ExportedKind, (record: unknown) => { readonly id: string }>> = {
  bucket: (record) => refs.bucket(bucketRecordSchema.parse(record).bucket),
  installation: (record) => {
    installationSchema.parse(record);
    return refs.installation;
  },
  connection: (record) => refs.connection(connectionSchema.parse(record).bucket),
  growth: (record) => refs.growth(growthRecordSchema.parse(record).bucket),
  user: (record) => refs.user(userRecordSchema.parse(record).userId),
  appointment: (record) => refs.appointment(appointmentNameIn(appointmentSchema.parse(record))),
  access: (record) => {
    policySchema.parse(record);
    return refs.access;
  },
  'api-key': (record) => refs.apiKey(keyRecordSchema.parse(record).id),
  'user-keys': (record) => refs.userKeys(userKeysSchema.parse(record).userId),
};

function appointmentNameIn({ email, subject }: z.infer<typeof appointmentSchema>): string {
  return appointmentNameOf(email === undefined ? { sub: subject ?? '' } : { email });
}

/** What no longer holds of a bucket whose index is new, and whose events may come by another way. */
const OF_THE_OLD_INDEX = new Set(['lastComparedAtMs', 'lifecycleCheck', 'indexId', 'provenAtMs']);

/** The record as it is imported. Throws `request.invalid` for one that this version of Tally cannot read. */
function restored({ id, kind, record }: ExportedRecord): ExportedRecord {
  if (idOf(kind, record) !== id) {
    throw new RequestError(
      'request.invalid',
      `${id}: this version of Tally cannot read the record. Import with the version that exported it, or a later one`,
    );
  }
  if (kind !== 'bucket') return { id, kind, record };
  return { id, kind, record: Object.fromEntries(Object.entries(record).filter(([name]) => !OF_THE_OLD_INDEX.has(name))) };
}

function idOf(kind: ExportedKind, record: unknown): string | undefined {
  try {
    return kinds[kind](record).id;
  } catch (error) {
    if (error instanceof z.ZodError) return undefined;
    throw error;
  }
}
