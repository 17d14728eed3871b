/**
 * Audited actions. The intent is stored before an action begins, its result afterwards:
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
