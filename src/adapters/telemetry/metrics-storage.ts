/** The metrics of asking S3 about objects, part of the one table. */
import { enrichResults, enrichSteps } from '../../domain/documents/enrichment.ts';
import { faults } from '../../domain/fault.ts';

/** Seconds that one request takes: from what a store nearby needs to the longest time-out. */
export const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const headFaults = Object.keys(faults).filter((code) => /^(s3|object|bucket\.missing|internal)/.test(code));
const headResults = ['present', 'absent', ...headFaults];

export const storageMetrics = {
  tally_head_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: { result: headResults },
    help: 'Looks at objects in S3, by result.',
    alert: 'rate of result="object.denied" > 0',
  },
  tally_head_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: {},
    buckets: requestBuckets,
    help: 'Duration of looks at objects.',
    alert: '',
  },
  tally_enrich_total: {
    type: 'counter',
    unit: 'documents',
    labels: { enrich: enrichSteps, result: [...enrichResults, ...headFaults, 'index.rejected', 'bucket.index-outdated'] },
    help: 'Live documents of buckets that ask for enrichment, by what was to be read and how that went; all but ok are written without it.',
    alert: 'rate of result="object.denied" or "index.rejected" > 0 for 10 min',
  },
  tally_head_in_flight_requests: { type: 'gauge', unit: 'requests', labels: {}, help: 'Looks and enrichments in flight.', alert: '' },
  tally_head_queued_requests: {
    type: 'gauge',
    unit: 'requests',
    labels: {},
    help: 'Looks and enrichments waiting for their turn.',
    alert: '',
  },
} as const;
