/** Sends requests to S3, and returns the raw response together with the SDK's output or error. */
import { Readable } from 'node:stream';
import type { S3Client, S3ClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes } from '@aws-sdk/client-s3';
import type { Command } from '@smithy/core/client';
import { z } from 'zod';
import type { PresentState } from '../ordering/document.ts';
import { FaultError } from '../base/fault.ts';
import { inTime } from '../base/in-time.ts';
import type { Clock } from '../process/clock.ts';
import { type S3Answer, type S3Question, type S3Refusal, questionText } from './faults.ts';
import { sendHead, type HeadInput, type HeadOptions, type HeadOutput } from './s3-head.ts';

export type Reply<Output> =
  | { readonly ok: true; readonly output: Output; readonly answer: S3Answer | undefined }
  | ({ readonly ok: false } & S3Refusal);

type S3Command<Input extends ServiceInputTypes, Output extends ServiceOutputTypes> = Command<
  Input,
  Output,
  S3ClientResolvedConfig,
  ServiceInputTypes,
  ServiceOutputTypes
>;
/** Called with the answer to each attempt before the SDK parses it. It may read the body and replace it. */
type ReadAnswer = (response: unknown) => Promise<void>;

export type Ask = ReturnType<typeof createAsk>;

/** Creates the functions that send one request and keep the raw answer to its last attempt. A failed request is a reply; a promise rejects only with the reason of an aborted signal. */
export function createAsk(clientFor: (region: string) => S3Client, clock: Pick<Clock, 'monotonicMs'>) {
  /** `send` calls `attempt` when an attempt begins, and what that returns with its answer. */
  async function replyTo<Output>(
    question: S3Question,
    signal: AbortSignal | undefined,
    send: (client: S3Client, options: HeadOptions) => Promise<Output>,
  ): Promise<Reply<Output>> {
    let answer: S3Answer | undefined;
    const attempt: HeadOptions['attempt'] = () => {
      answer = undefined;
      const sentMs = clock.monotonicMs();
      return (answered) => void (answer = { ...answered, durationMs: clock.monotonicMs() - sentMs });
    };
    try {
      const sent = send(clientFor(question.region), { attempt, ...(signal !== undefined && { abortSignal: signal }) });
      // the request itself may still wait for credentials or for its retry
      return { ok: true, output: await inTime(sent, signal), answer };
    } catch (error) {
      signal?.throwIfAborted();
      return { ok: false, error, answer };
    }
  }

  return {
    /** Sends a command, which can be sent once. */
    ask: <Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
      question: S3Question,
      command: S3Command<Input, Output>,
      signal: AbortSignal | undefined,
      read?: ReadAnswer,
    ): Promise<Reply<Output>> =>
      replyTo(question, signal, (client, { attempt, ...options }) => {
        command.middlewareStack.add(
          (next) => async (args) => {
            const answered = attempt();
            const result = await next(args);
            answered(responseSchema.parse(result.response));
            await read?.(result.response);
            return result;
          },
          // the innermost position: inside the retries, and before the SDK throws an error answer
          { step: 'deserialize', priority: 'low', name: 'keepRawAnswer' },
        );
        return client.send(command, options);
      }),
    /** Sends a HEAD of an object without the SDK's middleware. */
    askHead: (question: S3Question, input: HeadInput, signal: AbortSignal | undefined): Promise<Reply<HeadOutput>> =>
      replyTo(question, signal, (client, options) => sendHead(client, input, options)),
  };
}

/** Whether the answer has the status 200 and a body that nothing has read. */
export function hasBody(response: unknown): response is { readonly statusCode: 200; body: Readable } {
  if (typeof response !== 'object' || response === null || !('statusCode' in response) || !('body' in response)) return false;
  return response.statusCode === 200 && response.body instanceof Readable;
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

const responseSchema = z
  .object({ statusCode: z.number(), reason: z.string().default(''), headers: z.record(z.string(), z.string()) })
  .transform(({ statusCode: status, reason: reasonPhrase, headers }) => ({ status, reasonPhrase, headers }));

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
