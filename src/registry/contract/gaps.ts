/** Gaps: changes that may be missing, until a re-index has repaired them. */
import { z } from 'zod';
import { dueAtMs, isHeld, markKinds, nextOf, whyOf, type ListedGap } from '../../records/dirty.ts';
import { ageOfText, clockText, momentOfText } from '../../base/texts.ts';
import { columnsOf } from './command.ts';
import { bucketName, count, moment, oneOf, pageOf, time, timeOf, timeOfMaybe, paging } from './fields.ts';
import type { Row, RowKey } from './row.ts';

export const gapStates = ['open', 'closed'] as const;

export const gap = z
  .object({
    id: z.string(),
    bucket: z.string(),
    prefix: z.string().optional().describe('Only keys with this prefix are affected; absent: the whole bucket.'),
    state: z.enum(gapStates),
    why: z.string().describe('Why the gap was opened, in a few words; latest reason first.'),
    reasons: z
      .array(
        z.object({
          kind: z.enum(markKinds).describe('What kind of change may be missing.'),
          count: count.describe('How often it was reported.'),
          last_seen_at: time.describe('The time up to which it may be missing.'),
          example: z.string().describe('The latest report, in a few words.'),
        }),
      )
      .readonly(),
    since: time.describe('The time of the first change that may be missing.'),
    last_seen_at: time.describe('The time up to which changes may be missing. It may be in the future while AWS applies a change.'),
    next: z.string().optional().describe('What happens next; only for open gaps.'),
    due_at: time.optional().describe('When a re-index is due to begin for it; absent while one runs, or if none begins by itself.'),
    job_id: z.string().optional().describe('The job that repairs it, or that closed it.'),
    closed_at: time.optional(),
    held: z.boolean().optional().describe('Whether no re-index begins for it until you start one.'),
  })
  .meta({
    id: 'Gap',
    description: 'Changes to a bucket may be missing, so the index may differ until a re-index closes the gap.',
  });
export type Gap = z.infer<typeof gap>;

const columns = columnsOf<Gap>({
  BUCKET: 'bucket',
  PREFIX: 'prefix',
  SINCE: (of, nowMs) => momentOfText(of.since, nowMs),
  // changes may be missing until a change in AWS has taken effect: as far as is known, until now
  LAST: (of, nowMs) => ageOfText(of.last_seen_at, nowMs),
  WHY: 'why',
  NEXT: nextText,
});

/** What happens to the gap next, and when, according to the present plan. */
function nextText({ state, job_id: job, next = '', due_at: due }: Gap, nowMs: number): string {
  if (state === 'closed') return `closed by ${job ?? 'a re-index'}`;
  return due === undefined || Date.parse(due) <= nowMs ? next : `${next}, at ${clockText(due, nowMs)}`;
}

export const gapRows = {
  'GET /v1/gaps': {
    operation: 'listGaps',
    summary: 'Lists changes that may be missing.',
    description:
      'A gap stays open until a re-index that began after its last report has ended. Open gaps are sorted by bucket and prefix; gaps closed in the last 30 days, by bucket and time.',
    scope: 'monitor',
    query: z.strictObject({
      bucket: bucketName.exactOptional().describe('Only gaps of this bucket.'),
      state: oneOf(gapStates).exactOptional().describe('Default: open gaps.'),
      closed_after: moment.exactOptional().describe('Only gaps closed since this day (2026-11-21) or time.'),
      ...paging,
    }),
    answer: pageOf(gap),
    example: { query: { bucket: 'photos' } },
    cli: { words: 'gaps', columns, none: 'There are no gaps.', examples: ['tally gaps --bucket photos'] },
  },
} as const satisfies Record<RowKey, Row>;
export type GapsRequest = z.output<(typeof gapRows)['GET /v1/gaps']['query']>;

/** Converts a gap to its form in the API. */
export function gapView(listed: ListedGap, nowMs: number): Gap {
  const { id, bucket, prefix, sinceMs, lastSeenMs, reasons, jobId } = listed;
  const shown = {
    id,
    bucket,
    prefix,
    why: whyOf(listed),
    reasons: reasons.map(({ kind, count: times, lastMs, example }) => ({ kind, count: times, last_seen_at: timeOf(lastMs), example })),
    since: timeOf(sinceMs),
    last_seen_at: timeOf(lastSeenMs),
    job_id: jobId,
  };
  if ('closedAtMs' in listed) return { ...shown, state: 'closed', closed_at: timeOf(listed.closedAtMs) };
  const dueMs = dueAtMs(listed, nowMs);
  return {
    ...shown,
    state: 'open',
    next: nextOf(listed, nowMs),
    due_at: timeOfMaybe(Number.isFinite(dueMs) ? dueMs : undefined),
    held: isHeld(listed) || undefined,
  };
}
