/** Shows the series and the growth of buckets, from the records of all processes. */
import type { z } from 'zod';
import { timeOf } from '../../api/fields.ts';
import { SERIES_HOURS_MAX, type Series, type SeriesPoint, type SeriesRequest } from '../../api/series.ts';
import type { GrowthRequest, usageRows } from '../../api/usage.ts';
import { readsAll, type Readable } from '../../domain/access/readable.ts';
import { bucketStates } from '../../domain/bucket-status.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import { RequestError } from '../../domain/request-error.ts';
import { daysSince, growthRecordSchema } from '../../domain/series/growth.ts';
import { busiestIn, HOUR_MS, SERIES_KEPT_MS, stepMsOf, stepsOf, stepsOfBuckets, type Step } from '../../domain/series/hour.ts';
import { percentileMs } from '../../domain/series/lags.ts';
import { firstEntries, requireReadable } from '../buckets/list.ts';
import type { StateEntry } from '../ports/state.ts';
import { readPage } from '../records/pages.ts';
import { refs } from '../records/stored.ts';
import { createReadHours } from '../series/read.ts';
import type { WithPorts } from '../ports/ports.ts';

type GrowthAnswer = z.output<(typeof usageRows)['GET /v1/usage/growth']['answer']>;

interface SeriesDependencies extends WithPorts<'state' | 'clock'> {
  /** Whether TALLY_SERIES is on. */
  readonly recording: boolean;
}

const HOURS_DEFAULT = 24;

/** Creates the functions. They throw `request.invalid`, `bucket.not-connected` and the store's faults. */
export function createSeries({ state, clock, recording }: SeriesDependencies) {
  const readHours = createReadHours({ state, clock });

  async function getSeries(request: SeriesRequest, readable: Readable, signal?: AbortSignal): Promise<Series> {
    const { bucket } = request;
    const nowMs = clock.nowMs();
    const asked = timeOfRequest(request, nowMs);
    if (bucket !== undefined) await requireReadable(state, { bucket, readable }, signal);
    const isOfBuckets = bucket !== undefined || readable !== 'everything';
    const stepMs = stepMsOf(asked.fromMs, asked.toMs, isOfBuckets);
    const window = { stepMs, fromMs: Math.floor(asked.fromMs / stepMs) * stepMs, toMs: asked.toMs };
    const isReadable = (name: string): boolean => readsAll(readable, { bucket: name, prefix: '' });
    const isWanted = (name: string): boolean => (bucket === undefined || name === bucket) && isReadable(name);
    // of a part of a bucket there is no series
    const records =
      isOfBuckets && !someReadable(bucket, readable, isReadable)
        ? []
        : await readHours({ ...window, fromMs: Math.max(window.fromMs, nowMs - SERIES_KEPT_MS) }, signal);
    const steps = isOfBuckets ? stepsOfBuckets(records, isWanted, window) : stepsOf(records, window);
    return {
      from: timeOf(window.fromMs),
      to: timeOf(window.toMs),
      step_s: stepMs / 1_000,
      recording,
      points: steps.map(pointView),
      busiest: busiestIn(records, isWanted, window),
    };
  }

  async function getGrowth(
    { bucket, days, limit, cursor }: GrowthRequest,
    readable: Readable,
    signal?: AbortSignal,
  ): Promise<GrowthAnswer> {
    const nowMs = clock.nowMs();
    if (bucket !== undefined) await requireReadable(state, { bucket, readable }, signal);
    const page = await readPage<StateEntry, readonly [string]>({
      limit,
      after: cursor === undefined ? undefined : [decodeCursor(cursor, 1)[0] ?? ''],
      fetch: (count, [after] = ['']) => growthEntries({ bucket, readable }, { after, limit: count }, signal),
      positionOf: ({ id }) => [id],
    });
    const records = page.items.flatMap(({ record }) => growthRecordSchema.safeParse(record).data ?? []);
    return {
      ...page,
      items: records.map((record) => ({
        bucket: record.bucket,
        days: daysSince(record.days, { nowMs, count: days }),
        missed: daysSince(record.missed ?? [], { nowMs, count: days }),
      })),
      recording,
    };
  }

  /** The records after an id. Of a caller who may read some buckets these alone are read, so that a page tells nothing about the others. */
  function growthEntries(
    { bucket, readable }: { readonly bucket: string | undefined; readonly readable: Readable },
    { after, limit }: { readonly after: string; readonly limit: number },
    signal: AbortSignal | undefined,
  ): Promise<readonly StateEntry[]> {
    const all = readable === 'everything' ? undefined : readable.filter(({ prefix }) => prefix === '').map((part) => part.bucket);
    if (bucket === undefined && all === undefined) return state.list('growth', { limit, ...(after !== '' && { after }) }, signal);
    const names = bucket === undefined ? (all ?? []) : [bucket].filter((name) => all === undefined || all.includes(name));
    return firstEntries(
      state,
      names.map((name) => refs.growth(name).id).filter((id) => id > after),
      limit,
      signal,
    );
  }

  return { getSeries, getGrowth };
}

function someReadable(bucket: string | undefined, readable: Readable, isReadable: (name: string) => boolean): boolean {
  if (bucket !== undefined) return isReadable(bucket);
  return readable === 'everything' || readable.some((part) => part.prefix === '');
}

function timeOfRequest({ hours, from, to }: SeriesRequest, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const toMs = to === undefined ? nowMs : Date.parse(to);
  const fromMs = from === undefined ? toMs - (hours ?? HOURS_DEFAULT) * HOUR_MS : Date.parse(from);
  const isTwice = hours !== undefined && (from !== undefined || to !== undefined);
  const mistake = isTwice ? 'hours: not beside from and to' : mistakeIn(fromMs, toMs);
  if (mistake !== undefined) throw new RequestError('request.invalid', mistake);
  return { fromMs, toMs };
}

function mistakeIn(fromMs: number, toMs: number): string | undefined {
  if (Math.min(fromMs, toMs) < HOUR_MS) return 'from: is before 1970';
  if (fromMs >= toMs) return 'from: is not before the end';
  return toMs - fromMs > SERIES_HOURS_MAX * HOUR_MS ? `from: at most ${SERIES_HOURS_MAX} hours before the end` : undefined;
}

function pointView({ atMs, events, lags, statuses }: Step): SeriesPoint {
  const [half, most] = [percentileMs(lags, 0.5), percentileMs(lags, 0.95)];
  return {
    at: timeOf(atMs),
    events,
    ...(half !== undefined && { lag_p50_ms: half }),
    ...(most !== undefined && { lag_p95_ms: most }),
    // a newer version may have recorded another status
    ...(statuses !== undefined && {
      statuses: Object.fromEntries(bucketStates.flatMap((each) => (statuses[each] === undefined ? [] : [[each, statuses[each]]]))),
    }),
  };
}
