/**
 * The audit of what callers do. An action's intent is stored before an action begins, its result afterwards:
 *
 *   store the intent ──► act ──► store the result (done | failed)
 *        └── refused: `audit.unavailable`, and the act never begins
 *
 * A process that is killed in between leaves only the intent. If the result cannot be stored, it is logged, and the caller still gets the
 * action's response, because the action is already done.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Context } from '../registry/contract/contract.ts';
import type { AnyRequest } from '../registry/contract/row.ts';
import { FaultError, faultOf } from '../base/fault.ts';
import type { AuditEvent, AuditParameters, AuditRecord } from '../base/audit.ts';
import { RequestError } from '../base/request-error.ts';
import type { WithPorts, AuditStore } from '../store/store.ts';
import { defined } from '../base/defined.ts';
import type { AuditRequest } from '../registry/contract/audit.ts';
import { decodeCursor } from '../base/cursor.ts';
import { newAuditRecord, storeAuditRecord, readPage, type Page } from '../store/stored.ts';
import PQueue from 'p-queue';
import type { Actor, KeyActor } from '../base/actor.ts';
import { inTime } from '../base/in-time.ts';
import { addressGroupOf } from './address-group.rules.ts';
import type { KeyRecord } from './api-key.rules.ts';
import type { KnownUser } from './claims.rules.ts';
import type { UserRecord } from './user.rules.ts';

type Operation<Request, Answer> = (request: Request, context: Context) => Promise<Answer>;

/**
 * Makes an operation an audited action. `event`: its name, or a function that finds it; if that throws, nothing is recorded. `came`: what
 * the result names besides the request.
 */
export type Audited = <Request extends AnyRequest, Answer>(
  event: AuditEvent | ((request: Request, signal: AbortSignal) => Promise<AuditEvent>),
  operation: Operation<Request, Answer>,
  came?: (answer: Answer) => AuditParameters,
) => Operation<Request, Answer>;

export function createAudited({ audit, clock, telemetry }: WithPorts<'audit' | 'clock' | 'telemetry'>): Audited {
  async function storeIntent(record: AuditRecord, signal: AbortSignal): Promise<void> {
    try {
      await audit.append(record, signal);
    } catch (error) {
      signal.throwIfAborted();
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('store an audit record', error);
      const detail = `Tally did nothing, because it could not store the audit record of ${record.eventname} (${code}: ${reason})`;
      throw new FaultError('audit.unavailable', detail, { cause: error });
    }
    telemetry.audited(record);
  }

  const storeResult = (record: AuditRecord): Promise<void> => storeAuditRecord({ audit, telemetry }, record);

  return (event, operation, came = () => ({})) =>
    async function act(request, context) {
      const { actor, signal, requestId = randomUUID() } = context;
      signal.throwIfAborted();
      const facts = { event: typeof event === 'string' ? event : await event(request, signal), actor, requestId };
      const parameters = parametersOf(request);
      const intendedAtMs = clock.nowMs();
      await storeIntent(newAuditRecord({ ...facts, outcome: 'intended', atMs: intendedAtMs, parameters }), signal);
      // the two records' ids sort by time, whatever the clock does
      const endedAtMs = (): number => Math.max(clock.nowMs(), intendedAtMs + 1);
      let answer;
      try {
        // storing the intent may have taken longer than the caller waited
        signal.throwIfAborted();
        answer = await operation(request, context);
      } catch (error) {
        await storeResult(newAuditRecord({ ...facts, outcome: 'failed', atMs: endedAtMs(), reason: reasonOf(error), parameters }));
        throw error;
      }
      await storeResult(newAuditRecord({ ...facts, outcome: 'done', atMs: endedAtMs(), parameters: { ...parameters, ...came(answer) } }));
      return answer;
    };
}

const partSchema = z.record(z.string(), z.unknown()).catch({});

/** The parameters of path and body. The contract bounds both, and neither contains a secret. */
function parametersOf({ params, body }: AnyRequest): AuditParameters {
  return { ...partSchema.parse(params), ...partSchema.parse(body) };
}

function reasonOf(error: unknown): string {
  if (error instanceof RequestError) return `${error.code}: ${error.message}`;
  const { code, reason } = faultOf(error);
  return `${code}: ${reason}`;
}

const DAY_MS = 86_400_000;

/** Lists a page. Later records are newer, so they are on no further page. Throws `request.invalid` for a cursor that no page returned, and the store's faults. */
export async function listAudit(
  audit: Pick<AuditStore, 'list'>,
  { from, to, date, email, event, key, limit, cursor }: AuditRequest,
  signal?: AbortSignal,
): Promise<Page<AuditRecord>> {
  const dayMs = date === undefined ? [] : [Date.parse(`${date.replaceAll('/', '-')}T00:00:00Z`)];
  const froms = [...dayMs, ...(from === undefined ? [] : [Date.parse(from)])];
  const tos = [...dayMs.map((ms) => ms + DAY_MS), ...(to === undefined ? [] : [Date.parse(to)])];
  const query = {
    ...(froms.length > 0 && { fromMs: Math.max(...froms) }),
    ...(tos.length > 0 && { toMs: Math.min(...tos) }),
    ...defined({ email, event, key }),
  };
  return readPage({
    limit,
    after: decodeCursor(cursor, 1),
    fetch: (count, position) => {
      const before = position?.[0];
      return audit.list({ ...query, ...(before !== undefined && { before }), limit: count }, signal);
    },
    positionOf: ({ id }) => [id],
  });
}

// ── frequent events ────────────────────────────────────────────────────────────────────────────────────────────────

/** Some megabytes. */
const WINDOWS_MAX = 10_000;
/** How many closed windows wait for a slow store. Beyond that, a record is only logged. */
const WAITING_MAX = 10_000;
/** A small part of what the store can take, so that there is room for everything else. */
const WRITES = 8;

interface Happened {
  readonly event: AuditEvent;
  readonly outcome: AuditRecord['outcome'];
  readonly actor: Actor;
  readonly reason?: string;
  readonly parameters: AuditParameters;
}

/** Work that the process must finish before it ends. */
interface StoresWindows {
  /** Stores the windows that have ended. Call it every second. */
  storeEnded(): Promise<void>;
  /** Stores everything, at the end of the process. Gives up when the signal is aborted; the records are then in the log. */
  flush(signal: AbortSignal): Promise<void>;
}

interface Window {
  readonly happened: Happened;
  readonly beganAtMs: number;
  readonly endsAtMs: number;
  count: number;
}

/**
 * Creates windows of one length: one audit record per window for everything that is the same, with a count.
 *
 *   counted ──► open window ──its time ends──► closed ──► stored, a few at the same time
 *                   └── more than 10,000 windows are open: the oldest is closed earlier
 *
 * A process that is killed loses at most the windows that are open.
 */
function createAuditWindows({ audit, clock, telemetry }: WithPorts<'audit' | 'clock' | 'telemetry'>, windowMs: number) {
  /** In the order in which they began. */
  const open = new Map<string, Window>();
  const waiting = new Set<AuditRecord>();
  const writes = new PQueue({ concurrency: WRITES });

  function close(name: string, { happened, beganAtMs, count }: Window): void {
    open.delete(name);
    const parameters = { ...happened.parameters, count };
    const record = newAuditRecord({ ...happened, requestId: randomUUID(), atMs: beganAtMs, parameters });
    if (waiting.size < WAITING_MAX) {
      waiting.add(record);
      void writes.add(() => {
        waiting.delete(record);
        return storeAuditRecord({ audit, telemetry }, record);
      });
      return;
    }
    telemetry.audited(record);
    telemetry.requestFailed(
      'store an audit record',
      new FaultError('index.overloaded', `${WAITING_MAX} records of ${happened.event} wait already`),
    );
  }

  return {
    /** Counts an event of this name. The first opens a window, whose record has that event's facts. */
    count: (name: string, happened: Happened): void => {
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
    async storeEnded(): Promise<void> {
      const nowMs = clock.monotonicMs();
      for (const [name, window] of open) {
        // the others began later
        if (nowMs < window.endsAtMs) break;
        close(name, window);
      }
      await writes.onIdle();
    },
    async flush(signal: AbortSignal): Promise<void> {
      for (const [name, window] of open) close(name, window);
      await inTime(writes.onIdle(), signal).catch(() => {
        writes.clear();
        for (const record of waiting) telemetry.audited(record);
      });
    },
  };
}

/**
 * Failed credentials and logins. Because anyone can cause them, the audit has one record for each address, person, reason and minute,
 * with their number. Callers get the same answer for all; only the audit says the reason.
 */

const WINDOW_MS = 60_000;

/** The key to which a refused secret belongs or belonged. */
export type FailedKey = Pick<KeyRecord, 'id' | 'name' | 'fingerprint' | 'userId' | 'userEmail'> & {
  /** Set if its owner has an address that is not verified. */
  readonly isUnverified?: true;
};

export interface FailedAttempt {
  /** Where the request came from; undefined if unknown. */
  readonly address: string | undefined;
  /** What was wrong. It must not contain the credential. */
  readonly reason: string;
  readonly key?: FailedKey | undefined;
}

interface FailedLogin extends Pick<FailedAttempt, 'address' | 'reason'> {
  /** Absent: the issuer named no person. */
  readonly who?: Pick<UserRecord, 'userId' | 'email' | 'emailVerified'> | undefined;
}

export interface FailedAttempts extends StoresWindows {
  /** Records a failed login. There must be only few values of `reason` for each person. */
  loginFailed(failure: FailedLogin): void;
  /** Records a failed credential. */
  failed(attempt: FailedAttempt): void;
}

const UNKNOWN = { userId: '', email: 'unknown', emailVerified: true } as const;

interface FailedAttemptsDependencies extends WithPorts<'audit' | 'clock' | 'telemetry'> {
  /** This machine's name. */
  readonly host: string;
}

export function createFailedAttempts({ host, ...dependencies }: FailedAttemptsDependencies): FailedAttempts {
  const { count, ...windows } = createAuditWindows(dependencies, WINDOW_MS);
  return {
    ...windows,
    loginFailed({ address, reason, who: { userId, email, emailVerified } = UNKNOWN }) {
      const actor = {
        ...({ kind: 'session', userId, email, role: 'user', sessionId: '' } as const),
        ...(!emailVerified && { isUnverified: true as const }),
        ...(address !== undefined && { address }),
      };
      const name = JSON.stringify(['login', addressGroupOf(address ?? ''), userId, reason]);
      count(name, { event: 'LoginFailed', outcome: 'failed', reason, actor, parameters: {} });
    },
    failed({ address, reason, key }) {
      const name = JSON.stringify([addressGroupOf(address ?? ''), reason, key?.id]);
      const actor = {
        ...(key === undefined ? { kind: 'local' as const, host } : holderOf(key)),
        ...(address !== undefined && { address }),
      };
      count(name, { event: 'AuthenticationFailed', outcome: 'failed', reason, actor, parameters: {} });
    },
  };
}

export function failedKeyOf({ record, owner }: { readonly record: KeyRecord; readonly owner: KnownUser | undefined }): FailedKey {
  return { ...record, ...(owner?.emailVerified === false && { isUnverified: true }) };
}

/** The audit's actor for a caller who had a key's secret. It has no rights. */
export function holderOf({ id, name, fingerprint, userId, userEmail, isUnverified }: FailedKey): Actor {
  const user = { userId, email: userEmail, ...(isUnverified && { isUnverified }), role: 'user' } as const;
  return { kind: 'api_key', ...user, keyId: id, keyName: name, keyFingerprint: fingerprint, scopes: [] };
}

/** The audit of key uses: one record for each key, operation, address, outcome and five seconds, with the number of uses. */

const USES_MS = 5_000;

export interface KeyUses extends StoresWindows {
  /** Counts one use. `refusal`: the code with which the operation is refused to the key. */
  used(actor: KeyActor & { readonly address?: string }, operation: string, refusal?: string): void;
}

export function createKeyUses(dependencies: WithPorts<'audit' | 'clock' | 'telemetry'>): KeyUses {
  const { count, ...windows } = createAuditWindows(dependencies, USES_MS);
  return {
    ...windows,
    used(actor, operation, refusal) {
      const name = JSON.stringify([actor.keyId, operation, actor.address, refusal]);
      const ended = refusal === undefined ? ({ outcome: 'done' } as const) : ({ outcome: 'failed', reason: refusal } as const);
      count(name, { event: 'ApiKeyUse', ...ended, actor, parameters: { operation } });
    },
  };
}
