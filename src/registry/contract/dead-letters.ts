/** Dead letters: messages that could not be handled. */
import { z } from 'zod';
import type { LetterNotes } from '../../events/dead-letter.ts';
import { count, id, limit, must, time, timeOf } from './fields.ts';
import { columnsOf, type Given } from './command.ts';
import { ageOfText, sizeText } from '../../base/texts.ts';
import type { Row, RowKey } from './row.ts';

export const deadLetter = z
  .object({
    id: z.string().describe('The MessageId in the dead-letter queue.'),
    sent_at: time.describe('When it was sent to that queue.'),
    fault: z.string().optional().describe('The fault code; absent for letters that SQS itself moved.'),
    reason: z.string().optional().describe('What happened.'),
    context: z
      .object({
        queue: z.string().optional().describe('The URL of the queue that it came from.'),
        message_id: z.string().optional().describe('Its MessageId there.'),
        first_received_at: z.string().optional().describe('When it was first received.'),
        records: z
          .array(z.number())
          .readonly()
          .optional()
          .describe('The positions, from 0, of the first 100 records that failed; empty: the whole message failed.'),
      })
      .optional()
      .describe('What Tally knew about the message when it dead-lettered it.'),
    size_bytes: count.describe('The size of the body.'),
  })
  .meta({ id: 'DeadLetter', description: 'A message that could not be processed.' });
export type DeadLetter = z.infer<typeof deadLetter>;

const wholeLetter = deadLetter.extend({ body: z.string().describe('The original body, unchanged.') });
export type WholeDeadLetter = z.infer<typeof wholeLetter>;

/** How many letters one request takes. */
export const LETTERS_MAX = 1_000;

const remaining = count.describe('Roughly how many letters the dead-letter queues hold afterwards, as counted by SQS.');

const choice = z
  .union(
    [
      z.strictObject({ ids: z.array(id).min(1).max(LETTERS_MAX).readonly().describe('The IDs of the letters.') }),
      z.strictObject({ all: z.literal(true).describe('All current letters. One request handles at most 1,000 of them.') }),
    ],
    must('must be {"ids": ["…"]} or {"all": true}'),
  )
  .describe('Which letters: the named ones, or all.');

const ID = '5fea7756-0ea4-451a-a703-a558b933e274';

/** What remains after `all` was not reached, or was sent back and has failed again. */
function takenText(taken: string, left: number, { all }: Given): string {
  if (left === 0) return taken;
  const next = all === true ? ': look at their reasons before you repeat the command' : '';
  return `${taken}. About ${left} remain. \`tally dead-letters list\` shows them${next}.`;
}

export const deadLetterRows = {
  'GET /v1/dead-letters': {
    operation: 'listDeadLetters',
    summary: 'Lists the messages in the dead-letter queue with their reasons.',
    description: 'This removes no letters. SQS shows each letter to one reader at a time, so a concurrent request sees only the rest.',
    scope: 'operate',
    query: z.strictObject({ limit }),
    answer: z.object({ items: z.array(deadLetter).readonly() }),
    errors: ['dead-letter.no-queue', 'queue.unreachable', 'queue.missing'],
    example: { query: { limit: 20 } },
    cli: {
      words: 'dead-letters list',
      columns: columnsOf<DeadLetter>({
        ID: 'id',
        AGE: (letter, nowMs) => ageOfText(letter.sent_at, nowMs),
        SIZE: (letter) => sizeText(letter.size_bytes),
        FAULT: 'fault',
        REASON: 'reason',
      }),
      none: 'There are no dead letters.',
      examples: ['tally dead-letters list --limit 20'],
    },
  },
  'GET /v1/dead-letters/{id}': {
    operation: 'getDeadLetter',
    summary: 'Shows one dead letter with its original body.',
    scope: 'operate',
    params: z.object({ id: id.describe('The ID of the letter.') }),
    answer: wholeLetter,
    errors: ['dead-letter.not-found', 'dead-letter.no-queue', 'queue.unreachable', 'queue.missing'],
    example: { params: { id: ID } },
    cli: {
      words: 'dead-letters show <id>',
      columns: columnsOf<WholeDeadLetter>({
        id: 'id',
        sent: 'sent_at',
        size: (letter) => sizeText(letter.size_bytes),
        fault: (letter) => letter.fault ?? 'not stated: SQS itself moved the message here, or there was no room for the reason',
        reason: 'reason',
        context: ({ context }) => context && JSON.stringify(context),
      }),
      text: (letter: WholeDeadLetter) => letter.body,
      examples: [`tally dead-letters show ${ID}`],
    },
  },
  'POST /v1/dead-letters/replay': {
    operation: 'replayDeadLetters',
    summary: 'Moves the original bodies of letters back to the bucket queue.',
    scope: 'operate',
    body: choice,
    answer: z.object({ replayed: count.describe('How many letters were sent back.'), remaining }),
    errors: ['dead-letter.not-found', 'dead-letter.no-queue', 'queue.unreachable', 'queue.missing', 'audit.unavailable'],
    example: { body: { ids: [ID] } },
    cli: {
      words: 'dead-letters replay [ids...]',
      text: ({ replayed, remaining: left }: Readonly<Record<'replayed' | 'remaining', number>>, given) =>
        takenText(`Sent back: ${replayed}`, left, given),
      examples: [`tally dead-letters replay ${ID}`, 'tally dead-letters replay --all'],
    },
  },
  'POST /v1/dead-letters/discard': {
    operation: 'discardDeadLetters',
    summary: 'Deletes dead letters permanently.',
    scope: 'operate',
    body: choice,
    answer: z.object({ discarded: count.describe('How many letters were deleted.'), remaining }),
    errors: ['dead-letter.not-found', 'dead-letter.no-queue', 'queue.unreachable', 'queue.missing', 'audit.unavailable'],
    example: { body: { all: true } },
    cli: {
      words: 'dead-letters discard [ids...]',
      confirm: ({ ids }) => `This deletes ${Array.isArray(ids) ? `dead letters (${ids.length})` : 'all dead letters'} for good`,
      text: ({ discarded, remaining: left }: Readonly<Record<'discarded' | 'remaining', number>>, given) =>
        takenText(`Deleted: ${discarded}`, left, given),
      examples: [`tally dead-letters discard ${ID}`, 'tally dead-letters discard --all --yes'],
    },
  },
} as const satisfies Record<RowKey, Row>;

interface LetterFacts {
  readonly id: string;
  readonly sentAtMs: number;
  readonly sizeBytes: number;
  readonly notes: LetterNotes;
}

/** Converts a dead letter to its form in the API. */
export function deadLetterView({ id: letterId, sentAtMs, sizeBytes, notes }: LetterFacts): DeadLetter {
  return {
    id: letterId,
    sent_at: timeOf(sentAtMs),
    fault: notes.fault,
    reason: notes.reason,
    context: notes.context && contextView(notes.context),
    size_bytes: sizeBytes,
  };
}

function contextView({ queue, messageId, firstReceived, records }: NonNullable<LetterNotes['context']>): DeadLetter['context'] {
  return { queue, message_id: messageId, first_received_at: firstReceived, records };
}
