import { z } from 'zod';
import { FaultError } from '../../domain/fault.ts';
import type { OpenSearchClient } from './client.ts';
import { bodyOf, itemFault, parseAnswer, requestFault, stateFault, storeErrorSchema } from './faults.ts';
import type { IndexNames } from './names.ts';

const conflictSchema = z.object({
  items: z.tuple([z.object({ index: z.object({ status: z.number(), error: storeErrorSchema.optional() }) })]),
});
const settingsSchema = z.record(z.string(), z.object({ settings: z.record(z.string(), z.unknown()) }));

/** A sequence number that no document reaches, so that the conditional write below ends in a conflict and changes nothing. */
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Creates the probe of {@link ObjectIndex}. It attempts a conditional write to the state index that can only end in a
 * conflict. That detects every obstacle of a real write: connection, credentials, blocks of the cluster and of the state
 * index, a missing primary, a full queue. Then it looks for the flood stage on the object indices. It needs only the
 * permission to write to the state index and `indices:monitor/settings/get` on the object indices: no cluster permission.
 */
export function createProbe(client: OpenSearchClient, names: IndexNames) {
  return async function probe(signal?: AbortSignal): Promise<void> {
    await attemptWrite(signal);
    await lookForFloodStage(signal);
  };

  async function attemptWrite(signal?: AbortSignal): Promise<void> {
    const action = { index: { _index: names.state, _id: 'probe', if_seq_no: NEVER, if_primary_term: 1 } };
    const answer = await client.send(
      {
        method: 'POST',
        path: '/_bulk',
        query: { require_alias: true, timeout: '5s' },
        lines: `${JSON.stringify(action)}\n{}\n`,
      },
      signal,
    );
    if (answer.status !== 200) throw stateFault(requestFault(answer));
    const { status, error } = parseAnswer(conflictSchema, answer.body).items[0].index;
    if (status !== 409) throw stateFault(itemFault(status, error ?? { type: 'no_error' }));
  }

  async function lookForFloodStage(signal?: AbortSignal): Promise<void> {
    const setting = 'index.blocks.read_only_allow_delete';
    const answer = await client.send(
      { method: 'GET', path: `/${names.objectsPattern}/_settings/${setting}`, query: { flat_settings: true } },
      signal,
    );
    const indices = Object.entries(parseAnswer(settingsSchema, bodyOf(answer)));
    const flooded = indices.find(([, { settings }]) => settings[setting] === 'true');
    if (flooded !== undefined) throw new FaultError('index.blocked', `${flooded[0]}: ${setting} (the disk is past its flood stage)`);
  }
}
