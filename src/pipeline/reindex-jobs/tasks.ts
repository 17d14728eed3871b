/** What travels on the work queue: which job, and which of its ranges. Everything else is read by id when it arrives. */
import { z } from 'zod';
import type { QueueClient } from '../ports/queues.ts';

/** Without a range: the job itself is to be started or carried on. `turn` names the range's turn; absent: whichever is next. */
const taskSchema = z.strictObject({
  job: z.string().regex(/^job-[0-9a-z]{9}-[0-9a-f]{12}$/),
  range: z.number().int().nonnegative().exactOptional(),
  turn: z.number().int().nonnegative().exactOptional(),
});
export type Task = z.infer<typeof taskSchema>;

/** Reads a message's body; undefined for what is no task of ours. */
export function parseTask(body: string): Task | undefined {
  try {
    const parsed = taskSchema.safeParse(JSON.parse(body));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** Sends a task, to be seen after `delayS` (0 to 900). Throws `queue.unreachable`. */
export type SendTask = (task: Task, delayS?: number) => Promise<void>;

/** Creates the sending to one queue. */
export function createSendTask(queues: Pick<QueueClient, 'send'>, workQueueUrl: string): SendTask {
  return async function sendTask(task, delayS = 0) {
    await queues.send(workQueueUrl, { body: JSON.stringify(task), attributes: {}, ...(delayS > 0 && { delayS }) });
  };
}

/** What becomes of a task once it was looked at. */
export type TaskEnd =
  /** There is nothing left to do about it. */
  | { readonly kind: 'remove' }
  /** Its like is sent, to be seen after `delayS`, and it goes: however often it must wait, its receives are not counted. */
  | { readonly kind: 'again'; readonly delayS: number }
  /** It goes back as it is: its receives are counted. */
  | { readonly kind: 'back'; readonly delayS: number };

export const REMOVE: TaskEnd = { kind: 'remove' };

/** How long work waits for S3 or the index to get better: the store was asked in vain just now, and live events need it first. */
export const FAULT_WAIT_S = 15;
