/** Removes what has ended by its age: logins, sessions and grants. Nothing that was valid depends on it. */
import type { z } from 'zod';
import { appointmentSchema, isAppointmentOver } from '../../domain/identity/appointment.ts';
import { isLoginOver, loginRecordSchema } from '../../domain/identity/login.ts';
import { sessionRecordSchema } from '../../domain/identity/session.ts';
import type { StateKind } from '../../domain/state-kind.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';

/** One request lists this many. */
const PAGE = 500;

interface PurgeLoginsDependencies {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** Creates the work of one run. Records of a newer version are left alone. Throws the store's fault. */
export function createPurgeLogins({ state, clock }: PurgeLoginsDependencies): (signal: AbortSignal) => Promise<void> {
  async function purge<Schema extends z.ZodType>(
    kind: StateKind,
    schema: Schema,
    isEnded: (record: z.infer<Schema>, nowMs: number) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    let after: string | undefined;
    do {
      const entries = await state.list(kind, { limit: PAGE, ...(after !== undefined && { after }) }, signal);
      for (const { id, record, version } of entries) {
        const parsed = schema.safeParse(record);
        if (parsed.success && isEnded(parsed.data, clock.nowMs())) await state.remove(id, version, signal, 'soon');
      }
      after = entries.length < PAGE ? undefined : entries.at(-1)?.id;
    } while (after !== undefined);
  }

  return async function purgeLogins(signal) {
    await purge('login', loginRecordSchema, isLoginOver, signal);
    await purge('session', sessionRecordSchema, ({ endsAtMs }, nowMs) => nowMs >= endsAtMs, signal);
    await purge('appointment', appointmentSchema, isAppointmentOver, signal);
  };
}
