/** Reads the events of the last day, of all processes. */
import type { Events } from '../contract/events.ts';
import { timeOf } from '../contract/fields.ts';
import { defined } from '../../base/defined.ts';
import { DAY_MS, eventHourSchema, hourOf, percentileMs, STEP_MS, stepsOf, type EventHour } from '../../records/event-hours.ts';
import type { WithPorts } from '../../store/store.ts';
import { eventHourIdOf, pagesOf } from '../../store/stored.ts';

/** Records of one request, each of at most a few kilobytes. */
const PAGE = 200;

/** The events and the lag of the last 24 hours. A record that cannot be read is left out. Throws the store's fault. */
export async function getEvents({ state, clock }: WithPorts<'state' | 'clock'>, signal?: AbortSignal): Promise<Events> {
  const toMs = clock.nowMs();
  const fromMs = Math.floor((toMs - DAY_MS) / STEP_MS) * STEP_MS;
  const records: EventHour[] = [];
  // ids are in the order of their hours, and the id of an hour alone is before those of its processes
  for await (const entries of pagesOf(state, 'event-hour', { after: eventHourIdOf(hourOf(fromMs)), limit: PAGE, signal }))
    records.push(...entries.flatMap(({ record }) => eventHourSchema.safeParse(record).data ?? []));
  return {
    from: timeOf(fromMs),
    to: timeOf(toMs),
    step_s: STEP_MS / 1_000,
    steps: stepsOf(records, fromMs).map(({ atMs, events, lags }) => ({
      at: timeOf(atMs),
      events,
      ...defined({ lag_p50_ms: percentileMs(lags, 0.5), lag_p95_ms: percentileMs(lags, 0.95) }),
    })),
  };
}
