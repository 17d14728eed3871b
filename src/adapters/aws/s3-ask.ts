/** How S3 is asked: one request at a time, with the raw answer beside what the SDK makes of it. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import type { PresentState } from '../../domain/documents/document.ts';
import { FaultError } from '../../domain/fault.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import { noTracing, type Tracing } from '../../pipeline/ports/tracing.ts';
import type { S3Answer, S3Question, S3Refusal } from './s3-faults.ts';
import { questionText } from './s3-faults.ts';

export type Reply<Output> =
  | { readonly ok: true; readonly output: Output; readonly answer: S3Answer | undefined }
  | ({ readonly ok: false } & S3Refusal);

/** Sends one request. Rejects with the signal's reason only. */
export type Ask = <Output>(question: S3Question, signal: AbortSignal | undefined, how: HowToSend<Output>) => Promise<Reply<Output>>;

export interface HowToSend<Output> {
  readonly send: (client: S3Client, options: { readonly abortSignal?: AbortSignal }) => Promise<Output>;
  /** Given each attempt's answer before the SDK parses it; may read its body and put another in its place. */
  readonly read?: ReadAnswer;
}

type ReadAnswer = (response: unknown) => Promise<void>;

/** What one request keeps while the SDK is at it. */
interface Slot {
  answer?: S3Answer | undefined;
  readonly read: ReadAnswer | undefined;
  readonly monotonicMs: () => number;
}

/** Of the whole process: a client that several ask is watched once. */
const asking = new AsyncLocalStorage<Slot>();
const watched = new WeakSet<S3Client>();

/** Makes the function that sends one request and keeps the raw answer to its last attempt, whatever the SDK makes of it. */
export function createAsk(clientFor: (region: string) => S3Client, clock: Pick<Clock, 'monotonicMs'>, tracing: Tracing = noTracing): Ask {
  return async function ask(question, signal, { send, read }) {
    const slot: Slot = { read, monotonicMs: () => clock.monotonicMs() };
    const trace = tracing.s3Request(question);
    try {
      const client = watch(clientFor(question.region));
      const output = await asking.run(slot, () => send(client, signal === undefined ? {} : { abortSignal: signal }));
      trace.ended(undefined, slot.answer);
      return { ok: true, output, answer: slot.answer };
    } catch (error) {
      trace.ended(errorTypeOf(question, { error, answer: slot.answer }), slot.answer);
      signal?.throwIfAborted();
      return { ok: false, error, answer: slot.answer };
    }
  };
}

function watch(client: S3Client): S3Client {
  if (watched.has(client)) return client;
  watched.add(client);
  client.middlewareStack.add(
    (next) => async (args) => {
      const slot = asking.getStore();
      if (slot === undefined) return next(args);
      slot.answer = undefined;
      const sentMs = slot.monotonicMs();
      const result = await next(args);
      slot.answer = answerOf(result.response, slot.monotonicMs() - sentMs);
      await slot.read?.(result.response);
      return result;
    },
    // innermost: inside of retries, and before an error answer is thrown
    { step: 'deserialize', priority: 'low', name: 'keepRawAnswer' },
  );
  return client;
}

/** What a trace calls a refusal: its status, else the error's name. Absence is an answer. */
function errorTypeOf({ operation }: S3Question, { error, answer }: S3Refusal): string | undefined {
  if (operation === 'HeadObject' && isAbsence(answer)) return undefined;
  return answer === undefined ? (error instanceof Error ? error.name : 'unknown') : String(answer.status);
}

/** 404, or 405 of a delete marker. */
export function isAbsence(answer: S3Answer | undefined): boolean {
  if (answer?.status === 404) return true;
  return answer?.status === 405 && answer.headers['x-amz-delete-marker'] === 'true';
}

const responseSchema = z.object({
  statusCode: z.number(),
  reason: z.string().default(''),
  headers: z.record(z.string(), z.string()),
});

function answerOf(response: unknown, durationMs: number): S3Answer {
  const { statusCode, reason, headers } = responseSchema.parse(response);
  return { status: statusCode, reasonPhrase: reason, headers, durationMs };
}

/** D. Rounded down, as the Date header itself is (to whole seconds). */
export function observedAt(question: S3Question, answer: S3Answer | undefined): number {
  const dateMs = Date.parse(answer?.headers['date'] ?? '');
  if (answer === undefined || Number.isNaN(dateMs)) throw new FaultError('object.undated', `${questionText(question)}: no Date header`);
  return Math.floor(dateMs - answer.durationMs);
}

/** What HEAD and LIST both say. */
export function presentState(facts: {
  readonly ETag?: string | undefined;
  readonly sizeBytes: number | undefined;
  readonly LastModified?: Date | undefined;
  readonly StorageClass?: string | undefined;
}): PresentState {
  const state: { -readonly [Field in keyof PresentState]: PresentState[Field] } = { present: true };
  if (facts.ETag !== undefined) state.etag = facts.ETag.replaceAll('"', '');
  if (facts.sizeBytes !== undefined) state.sizeBytes = facts.sizeBytes;
  if (facts.LastModified !== undefined) state.lastModifiedMs = facts.LastModified.getTime();
  if (facts.StorageClass !== undefined) state.storageClass = facts.StorageClass;
  return state;
}
