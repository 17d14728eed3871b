/** One request to S3 with the raw answer to its last attempt, which tells the time of what was seen. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { S3Client } from '@aws-sdk/client-s3';
import { z } from 'zod';
import { FaultError } from '../../domain/fault.ts';
import type { Clock } from '../../pipeline/ports.ts';
import type { S3Answer, S3Question, S3Refusal } from './s3-faults.ts';
import { questionText } from './s3-faults.ts';

/** What a request came to: the SDK's output or error, and the answer if there was one. */
export type Reply<Output> =
  | { readonly ok: true; readonly output: Output; readonly answer: S3Answer | undefined }
  | ({ readonly ok: false } & S3Refusal);

type SendOptions = { readonly abortSignal?: AbortSignal };

/** Sends one request to the client of the question's region. Rejects with the signal's reason only. */
export type Ask = <Output>(
  question: S3Question,
  signal: AbortSignal | undefined,
  send: (client: S3Client, options: SendOptions) => Promise<Output>,
) => Promise<Reply<Output>>;

/** Makes the function that sends one request and keeps the raw answer to its last attempt, whatever the SDK makes of it. */
export function createAsk(clientFor: (region: string) => S3Client, clock: Pick<Clock, 'monotonicMs'>): Ask {
  const asking = new AsyncLocalStorage<{ answer?: S3Answer | undefined }>();
  const watched = new WeakSet<S3Client>();

  function watchedClient(region: string): S3Client {
    const client = clientFor(region);
    if (watched.has(client)) return client;
    watched.add(client);
    client.middlewareStack.add(
      (next) => async (args) => {
        const slot = asking.getStore() ?? {};
        slot.answer = undefined;
        const sentMs = clock.monotonicMs();
        const result = await next(args);
        slot.answer = answerOf(result.response, clock.monotonicMs() - sentMs);
        return result;
      },
      // innermost: inside of retries, and before an error answer is thrown
      { step: 'deserialize', priority: 'low', name: 'keepRawAnswer' },
    );
    return client;
  }

  return async function ask<Output>(
    { region }: S3Question,
    signal: AbortSignal | undefined,
    send: (client: S3Client, options: SendOptions) => Promise<Output>,
  ): Promise<Reply<Output>> {
    const slot: { answer?: S3Answer | undefined } = {};
    try {
      const output = await asking.run(slot, () => send(watchedClient(region), signal === undefined ? {} : { abortSignal: signal }));
      return { ok: true, output, answer: slot.answer };
    } catch (error) {
      signal?.throwIfAborted();
      return { ok: false, error, answer: slot.answer };
    }
  };
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

/** D. Rounded down, as the Date header itself is (to whole seconds). Throws `object.undated`. */
export function observedAt(question: S3Question, answer: S3Answer | undefined): number {
  const dateMs = Date.parse(answer?.headers['date'] ?? '');
  if (answer === undefined || Number.isNaN(dateMs)) throw new FaultError('object.undated', `${questionText(question)}: no Date header`);
  return Math.floor(dateMs - answer.durationMs);
}
