/** The metrics of what the index does for itself, part of the one table. */
import { faults } from '../../domain/fault.ts';
import { gapKinds, gapSchema } from '../../domain/gaps/gap.ts';
import { sweeps } from '../../pipeline/ports/telemetry.ts';

export const gapStates = gapSchema.shape.state.options;

export const calendarMetrics = {
  tally_gaps: {
    type: 'gauge',
    unit: 'gaps',
    labels: { kind: gapKinds, state: gapStates },
    help: 'Gaps by kind and state: open, closing (a job is at it) and closed ones that are kept to be shown.',
    alert: '',
  },
  tally_gaps_closed_total: {
    type: 'counter',
    unit: 'gaps',
    labels: { kind: gapKinds },
    help: 'Gaps that this process saw closed by a re-index job.',
    alert: '',
  },
  tally_gap_failures_total: {
    type: 'counter',
    unit: 'jobs',
    labels: { kind: gapKinds },
    help: 'Jobs that failed to close a gap, or could not begin; each gap says why, and is tried again.',
    alert: '',
  },
  tally_sweeps_total: {
    type: 'counter',
    unit: 'sweeps',
    labels: { sweep: sweeps, result: ['ok', ...Object.keys(faults)] },
    help: 'Sweeps of one bucket ended: of unsettled documents, of expected expirations, of old tombstones; full: a weekly re-index begun.',
    alert: 'rate of a result that is a fault > 0 for 6 h',
  },
  tally_swept_objects_total: {
    type: 'counter',
    unit: 'objects',
    labels: { sweep: ['unsettled', 'lifecycle'] },
    help: 'Objects that sweeps looked at in S3.',
    alert: '',
  },
  tally_purged_tombstones_total: {
    type: 'counter',
    unit: 'tombstones',
    labels: {},
    help: 'Tombstones deleted after their seven days.',
    alert: '',
  },
} as const;
