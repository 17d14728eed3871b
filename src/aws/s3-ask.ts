/** Sends requests to S3, and returns the raw response together with the SDK's output or error. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import type { PresentState } from '../ordering/document.ts';
import { FaultError } from '../base/fault.ts';
import { inTime } from '../base/in-time.ts';
import type { Clock } from '../process/clock.ts';
import { type S3Answer, type S3Question, type S3Refusal, questionText } from './s3-faults.ts';

export type Reply<Output> =
  | { readonly ok: true; readonly output: Output; readonly answer: S3Answer | undefined }
  | ({ readonly ok: false } & S3Refusal);

/** Sends one request. A failed request is a reply; the promise rejects only with the reason of an aborted signal. */
export type Ask = <Output>(question: S3Question, signal: AbortSignal | undefined, how: HowToSend<Output>) => Promise<Reply<Output>>;

interface HowToSend<Output> {
  /** `attempt` is for requests that go without the SDK’s middleware: it is called when an attempt begins, and returns what is called with its answer. */
  readonly send: (client: S3Client, options: { readonly abortSignal?: AbortSignal }, attempt: Attempt) => Promise<Output>;
  /** Called with the answer to each attempt before the SDK parses it. It may read the body and replace it. */
  readonly read?: ReadAnswer;
}

type Attempt = () => (answer: Omit<S3Answer, 'durationMs'>) => void;
type ReadAnswer = (response: unknown) => Promise<void>;

/** The raw answer of one request while the SDK processes it. */
interface AnswerHolder {
  answer?: S3Answer | undefined;
  readonly read: ReadAnswer | undefined;
  readonly monotonicMs: () => number;
}

/** One for the whole process, so that a client with several users is watched once. */
const holders = new AsyncLocalStorage<AnswerHolder>();
const watched = new WeakSet<S3Client>();

/** Creates the function that sends one request and keeps the raw answer to its last attempt. */
export function createAsk(clientFor: (region: string) => S3Client, clock: Pick<Clock, 'monotonicMs'>): Ask {
  return async function ask(question, signal, { send, read }) {
    const holder: AnswerHolder = { read, monotonicMs: () => clock.monotonicMs() };
    try {
      const client = watch(clientFor(question.region));
      const sent = holders.run(holder, () => send(client, signal === undefined ? {} : { abortSignal: signal }, () => beginAttempt(holder)));
      // the request itself may still wait for credentials or for its retry
      const output = await inTime(sent, signal);
      return { ok: true, output, answer: holder.answer };
    } catch (error) {
      signal?.throwIfAborted();
      return { ok: false, error, answer: holder.answer };
    }
  };
}

/** Whether the answer has the status 200 and a body that nothing has read. */
export function hasBody(response: unknown): response is { readonly statusCode: 200; body: Readable } {
  if (typeof response !== 'object' || response === null || !('statusCode' in response) || !('body' in response)) return false;
  return response.statusCode === 200 && response.body instanceof Readable;
}

function beginAttempt(holder: AnswerHolder): ReturnType<Attempt> {
  holder.answer = undefined;
  const sentMs = holder.monotonicMs();
  return (answer) => {
    holder.answer = { ...answer, durationMs: holder.monotonicMs() - sentMs };
  };
}

function watch(client: S3Client): S3Client {
  if (watched.has(client)) return client;
  watched.add(client);
  client.middlewareStack.add(
    (next) => async (args) => {
      const holder = holders.getStore();
      if (holder === undefined) return next(args);
      holder.answer = undefined;
      const sentMs = holder.monotonicMs();
      const result = await next(args);
      holder.answer = answerOf(result.response, holder.monotonicMs() - sentMs);
      await holder.read?.(result.response);
      return result;
    },
    // the innermost position: inside the retries, and before the SDK throws an error answer
    { step: 'deserialize', priority: 'low', name: 'keepRawAnswer' },
  );
  return client;
}

/** Whether the answer says that the object does not exist: 404, or 405 for a delete marker. */
export function isAbsence(answer: S3Answer | undefined): boolean {
  if (answer?.status === 404) return true;
  return answer?.status === 405 && answer.headers['x-amz-delete-marker'] === 'true';
}

/**
 * Whether S3 itself gave the answer, and just now. S3 and its substitutes send a request ID with every answer; proxies, block
 * pages and sign-in pages send none. A cache states the age of what it repeats (RFC 9111, section 5.1).
 * https://docs.aws.amazon.com/AmazonS3/latest/API/RESTCommonResponseHeaders.html
 */
export function isFromS3(answer: S3Answer | undefined): boolean {
  return answer?.headers['x-amz-request-id'] !== undefined && !isRepeated(answer);
}

/** Whether a cache between here and S3 repeated an earlier answer. */
export function isRepeated(answer: S3Answer | undefined): boolean {
  return Number(answer?.headers['age'] ?? 0) > 0;
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

/** The time D of an answer (see s3-storage.ts) in ms, rounded down like the Date header itself, which has whole seconds. Throws `object.failed` if there is no Date header. */
export function observedAt(question: S3Question, answer: S3Answer | undefined): number {
  const dateMs = Date.parse(answer?.headers['date'] ?? '');
  if (answer === undefined || Number.isNaN(dateMs))
    throw new FaultError('object.failed', `${questionText(question)}: the answer has no Date header, which a proxy may have removed`);
  return Math.floor(dateMs - answer.durationMs);
}

/** The fields that HEAD and LIST both return. */
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

/** The account that must own a bucket, as requests name it. Where it is not known, none is named: stores that only speak S3's protocol may not know the header. */
export function ownerInput({ account }: { readonly account?: string | undefined }): { readonly ExpectedBucketOwner?: string } {
  return account === undefined ? {} : { ExpectedBucketOwner: account };
}
