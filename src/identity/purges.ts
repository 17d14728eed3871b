/** Deletes old API keys, logins, sessions and appointments for the calendar, page by page. */
import type { z } from 'zod';
import { isPurged, keyRecordSchema, withoutKeys } from './api-key.rules.ts';
import { isLoginOver, loginRecordSchema } from './login.rules.ts';
import { sessionRecordSchema } from './session.rules.ts';
import { appointmentSchema, isAppointmentOver } from './user.rules.ts';
import type { StateKind } from '../records/state-kind.ts';
import type { WithPorts } from '../store/store.ts';
import { pagesOf, updateRecord } from '../store/stored.ts';
import { refs } from './refs.ts';

/** One request lists this many records. */
const PAGE = 200;

interface Ended<Schema extends z.ZodType> {
  readonly kind: StateKind;
  /** Records that it does not fit are of a newer version, and left alone. */
  readonly schema: Schema;
  readonly isEnded: (record: z.infer<Schema>, nowMs: number) => boolean;
}

/** Deletes the records that have ended. One that changes at this moment is left to the next run. `removed` is given those of each page. */
async function removeEnded<Schema extends z.ZodType>(
  { state, clock }: WithPorts<'state' | 'clock'>,
  { kind, schema, isEnded }: Ended<Schema>,
  signal: AbortSignal,
  removed: (records: readonly z.infer<Schema>[]) => Promise<void> = async () => undefined,
): Promise<void> {
  for await (const entries of pagesOf(state, kind, { limit: PAGE, signal })) {
    const gone: z.infer<Schema>[] = [];
    for (const { id, record, version } of entries) {
      const parsed = schema.safeParse(record);
      if (!parsed.success || !isEnded(parsed.data, clock.nowMs())) continue;
      if ((await state.remove(id, version, signal, 'soon')) === 'removed') gone.push(parsed.data);
    }
    await removed(gone);
  }
}

/** Deletes API keys 90 days after they ended or were revoked, also from the lists of their users. Throws the store's fault. */
export async function purgeApiKeys(ports: WithPorts<'state' | 'clock' | 'telemetry'>, signal: AbortSignal): Promise<void> {
  let count = 0;
  await removeEnded(ports, { kind: 'api-key', schema: keyRecordSchema, isEnded: isPurged }, signal, async (keys) => {
    count += keys.length;
    for (const { userId, id } of keys)
      await updateRecord(ports.state, refs.userKeys(userId), (current) => current && withoutKeys(current, new Set([id])));
  });
  if (count > 0) ports.telemetry.info('API keys that ended 90 days ago are deleted', { count });
}

/** Deletes logins, sessions and appointments that have ended. Throws the store's fault. */
export async function purgeLogins(ports: WithPorts<'state' | 'clock'>, signal: AbortSignal): Promise<void> {
  const isSessionOver = ({ endsAtMs }: { readonly endsAtMs: number }, nowMs: number): boolean => nowMs >= endsAtMs;
  await removeEnded(ports, { kind: 'login', schema: loginRecordSchema, isEnded: isLoginOver }, signal);
  await removeEnded(ports, { kind: 'session', schema: sessionRecordSchema, isEnded: isSessionOver }, signal);
  await removeEnded(ports, { kind: 'appointment', schema: appointmentSchema, isEnded: isAppointmentOver }, signal);
}
