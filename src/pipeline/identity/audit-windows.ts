/**
 * Audit records of what happens often: one record for everything that is the same within a window, with the number of times.
 *
 *   counted ──► open window ──its time ends──► closed ──► stored, a few at the same time
 *                   └── more than 10,000 windows are open: the oldest is closed earlier
 *
 * A process that is killed loses at most the windows that are open.
 */
import { randomUUID } from 'node:crypto';
import type { Actor } from '../../domain/identity/actor.ts';
import type { AuditEvent, AuditParameters, AuditRecord } from '../../domain/identity/audit.ts';
import type { AuditStore } from '../ports/audit.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { inTime } from '../serving/async.ts';
import { newAuditRecord, storeAuditRecord } from './audited.ts';

/** Some megabytes. */
const WINDOWS_MAX = 10_000;
/** Closed windows that wait for a slow store. Above them a record is in the log only. */
const WAITING_MAX = 10_000;
/** A small part of what the store takes, so that there is room for everything else. */
const WRITES = 8;

export interface AuditWindowDependencies {
  readonly audit: Pick<AuditStore, 'append'>;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly telemetry: Pick<Telemetry, 'audited' | 'requestFailed'>;
}

interface Happened {
  readonly event: AuditEvent;
  readonly outcome: AuditRecord['outcome'];
  readonly actor: Actor;
  readonly reason?: string;
  readonly parameters: AuditParameters;
}

/** What ends with the process. */
export interface StoresWindows {
  /** Stores the windows that have ended. Call it every second. */
  storeEnded(): Promise<void>;
  /** Stores everything, for the end of the process. Gives up when the signal is aborted; the records are in the log then. */
  flush(signal: AbortSignal): Promise<void>;
}

interface AuditWindows extends StoresWindows {
  /** Counts once more what has this name. Its first time opens a window, whose record has the facts of that time. */
  readonly count: (name: string, happened: Happened) => void;
}

interface Window {
  readonly happened: Happened;
  readonly beganAtMs: number;
  readonly endsAtMs: number;
  count: number;
}

/** Creates windows of one length. */
export function createAuditWindows({ audit, clock, telemetry }: AuditWindowDependencies, windowMs: number): AuditWindows {
  /** In the order in which they began. */
  const open = new Map<string, Window>();
  const waiting: AuditRecord[] = [];
  let writing: Promise<void> | undefined;

  function close(name: string, { happened, beganAtMs, count }: Window): void {
    open.delete(name);
    const parameters = { ...happened.parameters, count };
    const record = newAuditRecord({ ...happened, requestId: randomUUID(), atMs: beganAtMs, parameters });
    if (waiting.length < WAITING_MAX) {
      waiting.push(record);
      return;
    }
    telemetry.audited(record);
    telemetry.requestFailed('store an audit record', 'index.overloaded', `${WAITING_MAX} records of ${happened.event} wait already`);
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
    count(name, happened) {
      const nowMs = clock.monotonicMs();
      const current = open.get(name);
      if (current !== undefined && nowMs < current.endsAtMs) {
        current.count += 1;
        return;
      }
      if (current !== undefined) close(name, current);
      const [oldest] = open.size >= WINDOWS_MAX ? open : [];
      if (oldest !== undefined) close(...oldest);
      open.set(name, { happened, beganAtMs: clock.nowMs(), endsAtMs: nowMs + windowMs, count: 1 });
    },
    async storeEnded() {
      const nowMs = clock.monotonicMs();
      for (const [name, window] of open) {
        // the others began later
        if (nowMs < window.endsAtMs) break;
        close(name, window);
      }
      await write();
    },
    async flush(signal) {
      for (const [name, window] of open) close(name, window);
      await inTime(write(), signal).catch(() => {
        for (const record of waiting.splice(0)) telemetry.audited(record);
      });
    },
  };
}
