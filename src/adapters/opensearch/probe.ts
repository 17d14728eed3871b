import { z } from 'zod';
import { type Fault, FaultError } from '../../domain/fault.ts';
import type { OpenSearchClient } from './client.ts';
import { itemFault, parseAnswer, requestFault, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './names.ts';

const conflictSchema = z.object({
  items: z.tuple([z.object({ index: z.object({ status: z.number(), error: storeErrorSchema.optional() }) })]),
});
/** A sequence number that no document reaches, so that the conditional write below ends in a conflict and changes nothing. */
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Creates the probe of one bucket: a conditional write to the alias of the bucket's index that can only end in a conflict. Its
 * id is none that a key has. The shard refuses it after every check of a real write and before anything is stored, so it leaves no document, no
 * tombstone and no sequence number behind.
 */
export function createBucketProbe(client: OpenSearchClient, names: IndexNames) {
  return async function probeBucket(bucket: string, signal?: AbortSignal): Promise<void> {
    const fault = await attemptWrite(client, names.objectsAlias(bucket), signal);
    if (fault !== undefined) throw new FaultError(fault.code, fault.reason);
  };
}

/** Attempts the write that ends in a conflict, behind an alias; resolves with the fault of any other end. */
export async function attemptWrite(client: OpenSearchClient, alias: string, signal?: AbortSignal): Promise<Fault | undefined> {
  const action = { index: { _index: alias, _id: 'probe', if_seq_no: NEVER, if_primary_term: 1 } };
  const answer = await client.send(
    {
      method: 'POST',
      path: '/_bulk',
      query: { require_alias: true, timeout: '5s' },
      lines: `${JSON.stringify(action)}\n{}\n`,
    },
    signal,
  );
  if (answer.status !== 200) return requestFault(answer);
  const { status, error } = parseAnswer(conflictSchema, answer.body).items[0].index;
  return status === 409 ? undefined : itemFault(status, error ?? { type: 'no_error' });
}
