/**
 * The policy as it is stored: one record with all grants. A process keeps what it read, and reads the version of the record with
 * each request, so that a change acts at the next request everywhere.
 */
import type { Grant } from '../../domain/access/grant.ts';
import { GRANTS_MAX, inOrder, POLICY_BYTES_MAX, policyOf, type Policy } from '../../domain/access/policy.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { StateVersion } from '../ports/state.ts';
import { parseEntry, refs, updateRecord } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

/** A state index that was deleted and restored may count its versions from the beginning: what was read is read again after this time. */
const KNOWN_MAX_MS = 60_000;

export interface StoredGrants {
  /** The policy of this moment. Throws the store's fault. */
  current(signal?: AbortSignal): Promise<Policy>;
  /** Stores what `change` makes of the grants; the same array: nothing changes. Throws `grant.limit` and as updateRecord does. */
  change(change: (grants: readonly Grant[]) => readonly Grant[]): Promise<void>;
}

export function createStoredGrants({ state, clock }: WithPorts<'state' | 'clock'>): StoredGrants {
  let known: { readonly version: StateVersion | undefined; readonly readAtMs: number; readonly policy: Policy } | undefined;

  async function read(signal: AbortSignal | undefined): Promise<Policy> {
    const readAtMs = clock.monotonicMs();
    const entry = await state.get(refs.access.id, signal);
    const policy = policyOf(entry === undefined ? [] : parseEntry(entry, refs.access.schema).grants);
    known = { version: entry?.version, readAtMs, policy };
    return policy;
  }

  return {
    async current(signal) {
      if (known === undefined || clock.monotonicMs() - known.readAtMs >= KNOWN_MAX_MS) return read(signal);
      const { version, policy } = known;
      return (await state.version(refs.access.id, signal)) === version ? policy : read(signal);
    },
    async change(change) {
      await updateRecord(
        state,
        refs.access,
        (stored) => {
          const before = stored?.grants ?? [];
          const after = change(before);
          if (after === before) return stored;
          requireRoom(after);
          return { grants: inOrder(after) };
        },
        'soon',
      );
    },
  };
}

function requireRoom(grants: readonly Grant[]): void {
  if (grants.length > GRANTS_MAX) {
    throw new RequestError(
      'grant.limit',
      `there may be at most ${GRANTS_MAX} grants: grant to groups instead of people, or shorter prefixes`,
    );
  }
  if (Buffer.byteLength(JSON.stringify(grants)) > POLICY_BYTES_MAX) {
    throw new RequestError(
      'grant.limit',
      `all grants together may have at most ${POLICY_BYTES_MAX / 1024 / 1024} MiB: grant shorter prefixes`,
    );
  }
}
