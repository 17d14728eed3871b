/** Facts about what the index does for itself, as metrics and log lines. */
import type { Logger } from 'pino';
import { gapKinds } from '../../domain/gaps/gap.ts';
import type { CalendarTelemetry } from '../../pipeline/ports/telemetry.ts';
import { gapStates } from './metrics-calendar.ts';
import type { Metrics } from './metrics.ts';

/** Creates the facts of the calendar. */
export function calendarFacts({ log, metrics }: { readonly log: Logger; readonly metrics: Metrics }): CalendarTelemetry {
  return {
    gapStates(counts) {
      for (const kind of gapKinds) {
        for (const state of gapStates) {
          const found = counts.find((each) => each.kind === kind && each.state === state);
          metrics.set('tally_gaps', found?.count ?? 0, { kind, state });
        }
      }
    },
    gapClosed({ bucket, kind, prefix, jobId }) {
      metrics.count('tally_gaps_closed_total', { kind });
      log.info({ bucket, kind, prefix, jobId }, 'gap closed');
    },
    gapStays({ bucket, kind, prefix, waits }) {
      metrics.count('tally_gap_failures_total', { kind });
      log.warn({ bucket, kind, prefix, ...waits }, 'gap stays open');
    },
    sweepEnded({ sweep, bucket, result, objects }) {
      metrics.count('tally_sweeps_total', { sweep, result });
      if (sweep === 'tombstones') metrics.count('tally_purged_tombstones_total', {}, objects);
      else metrics.count('tally_swept_objects_total', { sweep }, objects);
      if (result !== 'ok' || objects > 0) log.info({ sweep, bucket, result, objects }, 'sweep ended');
    },
  };
}
