/** Gaps: changes that a source did not report. */
import { z } from 'zod';
import { shellWord } from '../domain/commands.ts';
import { gapDueAtMs } from '../domain/gaps/closing.ts';
import { gapKinds, gapStates, type GapRecord } from '../domain/gaps/gap.ts';
import { ageOfText, clockText, momentOfText } from '../domain/texts.ts';
import { columnsOf } from './command.ts';
import { bucketName, count, cursor, limit, must, pageOf, time, timeOf, timeOfMaybe } from './fields.ts';
import type { Row, RowKey } from './row.ts';

export const gap = z
  .object({
    id: z.string(),
    bucket: z.string(),
    kind: z.enum(gapKinds).describe('What kind of change went unreported; held-deletes: deletions that wait for a person.'),
    prefix: z.string().optional().describe('Only keys with this prefix are concerned; absent: the whole bucket.'),
    reason: z.string().describe('Why the gap was opened; the latest reason.'),
    first_seen_at: time.describe('The time of the first change that is known to be missing.'),
    last_seen_at: time.describe('The time of the last one.'),
    count: count.describe('How often it was seen.'),
    state: z.enum(gapStates),
    job_id: z
      .string()
      .optional()
      .describe('The job that closes it or has closed it; of an open gap, one that began too early to close it.'),
    closed_at: time.optional(),
    covered: z.boolean().optional().describe('The keys of all its bulk deletes are reported one by one as well.'),
    failures: count.optional().describe('How many jobs in a row did not close it.'),
    waits: z
      .object({ reason: z.string(), until: time.optional() })
      .optional()
      .describe('Why it is still open, and until when by the present plan.'),
    not_before: time.optional().describe('No job is started for it before this time.'),
    due_at: time
      .optional()
      .describe(
        'When a job is started for it by the present plan; of an open gap that waits for no person. It moves while changes are reported.',
      ),
    held_deletes: count
      .optional()
      .describe('Deletions that the latest re-index held back, and that wait for a person. Only of the kind held-deletes.'),
    held: z.boolean().optional().describe('No job is started for it until a re-index is requested.'),
  })
  .meta({
    id: 'Gap',
    description: 'Changes of a bucket that its source did not report, so that the index may differ until a re-index closes the gap.',
  });
export type Gap = z.infer<typeof gap>;

const columns = columnsOf<Gap>({
  BUCKET: 'bucket',
  KIND: 'kind',
  STATE: 'state',
  JOB: 'job_id',
  COUNT: 'count',
  FIRST: (of, nowMs) => momentOfText(of.first_seen_at, nowMs),
  // changes may be missing until a change in AWS has taken effect: until now, as far as it is known
  LAST: (of, nowMs) => ageOfText(of.last_seen_at, nowMs),
  PREFIX: 'prefix',
  'LATEST REASON': 'reason',
  NEXT: nextText,
});

/** What happens to the gap next, and when by the present plan. */
function nextText(found: Gap, nowMs: number): string | undefined {
  const { state, waits, held, job_id: job } = found;
  switch (state) {
    case 'closed':
      return undefined;
    case 'closing':
      return `${job ?? 'a job'} closes it`;
    case 'open':
      if (held === true) return `waits for you: ${waits?.reason ?? 'start a re-index'}: \`tally reindex ${shellWord(found.bucket)}\``;
      return waits === undefined
        ? dueText(found, nowMs)
        : `waits: ${waits.reason}${found.kind === 'held-deletes' ? '' : untilText(waits.until ?? found.not_before, nowMs)}`;
  }
}

function dueText({ due_at: due }: Gap, nowMs: number): string {
  return due === undefined || Date.parse(due) <= nowMs ? 're-index due' : `re-index at ${clockText(due, nowMs)}`;
}

function untilText(until: string | undefined, nowMs: number): string {
  return until === undefined || Date.parse(until) <= nowMs ? '' : `, until ${clockText(until, nowMs)}`;
}

export const gapRows = {
  'GET /v1/gaps': {
    operation: 'listGaps',
    summary: 'Lists changes that a source did not report.',
    description:
      'Such gaps, and deletions that wait for a person, are sorted by bucket, kind and prefix. The index may differ from the bucket until a re-index closes them.',
    scope: 'monitor',
    query: z.strictObject({
      bucket: bucketName.exactOptional().describe('Only gaps of this bucket.'),
      state: z
        .enum(gapStates, must(`must be one of ${gapStates.join(', ')}`))
        .exactOptional()
        .describe('Only gaps in this state.'),
      limit,
      cursor: cursor.exactOptional(),
    }),
    answer: pageOf(gap),
    status: 200,
    errors: [],
    example: { query: { bucket: 'photos', state: 'open' } },
    cli: { words: 'gaps', columns, none: 'There are no gaps.', examples: ['tally gaps --state open'] },
  },
} as const satisfies Record<RowKey, Row>;
export type GapsRequest = z.output<(typeof gapRows)['GET /v1/gaps']['query']>;

/** Converts a stored gap to its form in the API. */
export function gapView(record: GapRecord): Gap {
  const { waits } = record;
  return {
    id: record.id,
    bucket: record.bucket,
    kind: record.kind,
    prefix: record.prefix,
    reason: record.reason,
    first_seen_at: timeOf(record.firstSeenMs),
    last_seen_at: timeOf(record.lastSeenMs),
    count: record.count,
    state: record.state,
    job_id: record.jobId,
    closed_at: timeOfMaybe(record.closedAtMs),
    covered: record.covered,
    failures: record.failures,
    waits: waits && { reason: waits.reason, until: timeOfMaybe(waits.untilMs) },
    not_before: timeOfMaybe(record.notBeforeMs),
    due_at: dueAt(record),
    held_deletes: record.heldDeletes,
    held: record.held,
  };
}

function dueAt(record: GapRecord): string | undefined {
  const dueAtMs = gapDueAtMs(record);
  return record.state === 'open' && Number.isFinite(dueAtMs) ? timeOf(dueAtMs) : undefined;
}
