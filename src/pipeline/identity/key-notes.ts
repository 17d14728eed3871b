/** What is noted when a key is used: the time, in its record, and a warning in the log before it ends. No request waits for either. */
import type { KeyActor } from '../../domain/identity/actor.ts';
import type { KeyRecord } from '../../domain/identity/api-key.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { refs, updateRecord } from '../records/stored.ts';
import { createCounter } from './limits.ts';

/** A minute is exact enough to find unused keys, and a busy key costs one write in it, whatever the number of processes. */
const USED_EVERY_MS = 60_000;
/** Writes at the same time. A key above them is noted at its next use. */
const WRITES_MAX = 100;
/** Once a day is enough to be read, and does not fill the log. */
const WARNED_EVERY_MS = 86_400_000;

interface KeyNotesDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly telemetry: Pick<Telemetry, 'requestFailed' | 'warn'>;
}

interface KeyNotes {
  /** Notes that the key was used now. Never throws. */
  used(record: KeyRecord, actor: KeyActor): void;
}

/** Creates the function. */
export function createKeyNotes({ state, clock, telemetry }: KeyNotesDependencies): KeyNotes {
  const writing = new Set<string>();
  /** This process's own writes, because the record that callers have may be some seconds older. */
  const isWrittenAlready = createCounter(clock, { windowMs: USED_EVERY_MS, countMax: 1 });
  const isWarnedAlready = createCounter(clock, { windowMs: WARNED_EVERY_MS, countMax: 1 });

  async function write(id: string, email: string): Promise<void> {
    const nowMs = clock.nowMs();
    await updateRecord(
      state,
      refs.apiKey(id),
      (current) => {
        if (current === undefined || current.revokedAtMs !== undefined || isRecent(current, nowMs)) return current;
        return { ...current, lastUsedAtMs: nowMs, userEmail: email };
      },
      'soon',
    );
  }

  function noteUse(record: KeyRecord, email: string): void {
    const { id } = record;
    if (isRecent(record, clock.nowMs()) || writing.has(id) || writing.size >= WRITES_MAX) return;
    if (isWrittenAlready(id) !== undefined) return;
    writing.add(id);
    write(id, email)
      .catch((error: unknown) => {
        const { code, reason } = faultOf(error);
        telemetry.requestFailed('store when an API key was last used', code, reason);
      })
      .finally(() => writing.delete(id));
  }

  return {
    used(record, { email, endsSoonAtMs }) {
      noteUse(record, email);
      if (endsSoonAtMs === undefined || isWarnedAlready(record.id) !== undefined) return;
      telemetry.warn('an API key in use ends soon', {
        name: record.name,
        fingerprint: record.fingerprint,
        owner: email,
        expiresAt: new Date(endsSoonAtMs).toISOString(),
        advice: 'Create a new key, switch to it, then revoke this one.',
      });
    },
  };
}

function isRecent({ lastUsedAtMs = -Infinity }: KeyRecord, nowMs: number): boolean {
  return nowMs - lastUsedAtMs < USED_EVERY_MS;
}
