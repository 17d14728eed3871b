/** The messages of the work queue. A task names a job and one of its ranges; everything else is read from their records. */
import { z } from 'zod';
import { FAULT_WAIT_MS } from '../../domain/reindex/range-transitions.ts';
import type { QueueClient } from '../ports/queues.ts';

/** The longest name of a lease, with room to spare. */
const LEASE_NAME_LENGTH_MAX = 500;

/**
 * Without a range, the task starts or continues the job itself. `turn`: the turn of the range; absent: the next one, whichever it
 * is. `watched`: the name of a lease that was found to be one that no right clock can have stored. The task comes back after WATCH_MS,
 * which SQS measures: if the range still has this lease, it is over. The message keeps the name because the next worker that
 * receives it is rarely the same one.
 */
const taskSchema = z.strictObject({
  job: z.string().regex(/^job-[0-9a-z]{9}-[0-9a-f]{12}$/),
  range: z.number().int().nonnegative().exactOptional(),
  turn: z.number().int().nonnegative().exactOptional(),
  watched: z.string().max(LEASE_NAME_LENGTH_MAX).exactOptional(),
});
export type Task = z.infer<typeof taskSchema>;

/** Parses a message's body; undefined if it is not a task. */
export function parseTask(body: string): Task | undefined {
  try {
    const parsed = taskSchema.safeParse(JSON.parse(body));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** The longest delay that SQS accepts. */
const DELAY_S_MAX = 900;

/** Sends a task that becomes visible after `delayS` seconds (at most 900, which is what SQS accepts; default 0). Throws `queue.unreachable`. */
export type SendTask = (task: Task, delayS?: number) => Promise<void>;

/** Creates the function that sends tasks to one work queue. */
export function createSendTask(queues: Pick<QueueClient, 'send'>, workQueueUrl: string): SendTask {
  return async function sendTask(task, delayS = 0) {
    const boundedS = Math.min(delayS, DELAY_S_MAX);
    await queues.send(workQueueUrl, { body: JSON.stringify(task), attributes: {}, ...(boundedS > 0 && { delayS: boundedS }) });
  };
}

/** What happens to a task's message after the task was worked on. */
export type TaskEnd =
  /** It is deleted: nothing is left to do. */
  | { readonly kind: 'remove' }
  /** It is replaced by a new message, visible after `delayS`. However often the task waits, its receive count stays low. `watched`: see Task. */
  | { readonly kind: 'again'; readonly delayS: number; readonly watched?: string }
  /** It is made visible again after `delayS`, and its receive count grows. */
  | { readonly kind: 'back'; readonly delayS: number };

export const REMOVE: TaskEnd = { kind: 'remove' };

/** FAULT_WAIT_MS as SQS takes it. */
export const FAULT_WAIT_S = FAULT_WAIT_MS / 1_000;
