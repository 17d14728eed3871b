/**
 * The audit of the uses of keys: one record for each key, operation, address and five seconds, with the number of uses.
 *
 *   used ──► open window ──5 s──► closed ──► stored, a few at the same time
 *                └── more than 10,000 windows are open: the oldest is closed earlier
 *
 * A process that is killed loses at most the windows that are open.
 */
import { randomUUID } from 'node:crypto';
import { operationsOf, type AnyOperation, type VerbName, type Verbs } from '../../api/contract.ts';
import type { KeyActor } from '../../domain/identity/actor.ts';
import { auditRecordOf, type AuditRecord } from '../../domain/identity/audit.ts';
import type { AuditStore } from '../ports/audit.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { inTime } from '../serving/async.ts';
import { storeAuditRecord } from './audited.ts';

const WINDOW_MS = 5_000;
/** Some megabytes. */
const WINDOWS_MAX = 10_000;
/** Closed windows that wait for a slow store. Above them a record is in the log only. */
const WAITING_MAX = 10_000;
/** A tenth of what the store takes beside everything else. */
const WRITES = 8;

interface KeyUsesDependencies {
  readonly audit: Pick<AuditStore, 'append'>;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly telemetry: Pick<Telemetry, 'audited' | 'requestFailed'>;
}

type CallingKey = KeyActor & { readonly address?: string };

export interface KeyUses {
  /** Counts one use. */
  used(actor: CallingKey, operation: string): void;
  /** Stores the windows that have ended. Call it every second. */
  storeEnded(): Promise<void>;
  /** Stores everything, for the end of the process. Gives up when the signal is aborted; the records are in the log then. */
  flush(signal: AbortSignal): Promise<void>;
}

interface Window {
  readonly actor: CallingKey;
  readonly operation: string;
  readonly beganAtMs: number;
  readonly endsAtMs: number;
  count: number;
}

/** Creates the recorder. */
export function createKeyUses({ audit, clock, telemetry }: KeyUsesDependencies): KeyUses {
  /** In the order in which they began. */
  const open = new Map<string, Window>();
  const waiting: AuditRecord[] = [];
  let writing: Promise<void> | undefined;

  function close(id: string, { actor, operation, beganAtMs, count }: Window): void {
    open.delete(id);
    const facts = { event: 'ApiKeyUse', outcome: 'done', actor, requestId: randomUUID(), atMs: beganAtMs } as const;
    const record = auditRecordOf({ ...facts, parameters: { operation, count } });
    if (waiting.length < WAITING_MAX) {
      waiting.push(record);
      return;
    }
    telemetry.audited(record);
    telemetry.requestFailed('store an audit record', 'index.overloaded', `${WAITING_MAX} records of uses of API keys wait already`);
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      await Promise.all(waiting.splice(0, WRITES).map((record) => storeAuditRecord({ audit, telemetry }, record)));
    }
  }

  /** Only one writer runs at a time; what is closed meanwhile is written by it too. */
  function write(): Promise<void> {
    writing ??= writeAll().finally(() => {
      writing = undefined;
    });
    return writing;
  }

  return {
    used(actor, operation) {
      const id = JSON.stringify([actor.keyId, operation, actor.address]);
      const nowMs = clock.monotonicMs();
      const current = open.get(id);
      if (current !== undefined && nowMs < current.endsAtMs) {
        current.count += 1;
        return;
      }
      if (current !== undefined) close(id, current);
      const [oldest] = open.size >= WINDOWS_MAX ? open : [];
      if (oldest !== undefined) close(...oldest);
      open.set(id, { actor, operation, beganAtMs: clock.nowMs(), endsAtMs: nowMs + WINDOW_MS, count: 1 });
    },
    async storeEnded() {
      const nowMs = clock.monotonicMs();
      for (const [id, window] of open) {
        // the others began later
        if (nowMs < window.endsAtMs) break;
        close(id, window);
      }
      await write();
    },
    async flush(signal) {
      for (const [id, window] of open) close(id, window);
      await inTime(write(), signal).catch(() => {
        for (const record of waiting.splice(0)) telemetry.audited(record);
      });
    },
  };
}

/** Wraps the verbs: each call with an API key is counted. */
export function recordingKeyUses(verbs: Verbs, uses: Pick<KeyUses, 'used'>): Verbs {
  const byName: Readonly<Record<VerbName, AnyOperation>> = verbs;
  return operationsOf(({ operation }) => (request, context) => {
    if (context.actor.kind === 'api_key') uses.used(context.actor, operation);
    return byName[operation](request, context);
  });
}
