/**
 * Large answers of SQS are read one after another. SQS returns up to ten messages of 1 MiB at once, and each byte of them
 * takes five while it is read (its chunks, the whole text, the bodies), so the pollers of a small container would exhaust its
 * memory together. The bytes of an answer that waits stay in the connection. Usual answers are read as they come.
 */
import { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { HttpResponse } from '@smithy/core/protocols';

/** Ten messages of 25 kB, ten times the usual size. */
const LARGE_BYTES = 262_144;

/** Resolves when the answer may be read. */
export type BeforeReading = (answer: unknown) => Promise<void>;

/** Creates the line in which the large answers of all pollers wait. `room` is awaited at its head. */
export function createLargeAnswers(room: (signal: AbortSignal) => Promise<void>, stopping: AbortSignal): BeforeReading {
  let last = Promise.resolve();
  return async function beforeReading(answer) {
    if (!HttpResponse.isInstance(answer) || !(answer.body instanceof IncomingMessage)) return;
    const { body, headers } = answer;
    if (body.destroyed) throw endedEarly();
    if (Number(headers['content-length'] ?? Number.POSITIVE_INFINITY) <= LARGE_BYTES) return;
    const before = last;
    const read = Promise.withResolvers<void>();
    last = read.promise;
    // one turn later its messages are in hand, and count for the next one
    body.once('close', () => void setImmediate().then(() => read.resolve()));
    await before;
    // at a stop nothing more is read, so the messages return to the queue when their visibility time-out ends
    if (!stopping.aborted) await room(stopping).catch(() => undefined);
    if (stopping.aborted) body.destroy();
    if (body.destroyed) throw endedEarly();
  };
}

function endedEarly(): Error {
  return new Error('the connection ended before the answer was read');
}

/** Makes the client await `beforeReading` between the headers of an answer and its body. */
export function beforeAnswersOf(client: SQSClient, beforeReading: BeforeReading): void {
  client.middlewareStack.addRelativeTo(
    <Input, Result extends { readonly response: unknown }>(next: (input: Input) => Promise<Result>) =>
      async (input: Input) => {
        const result = await next(input);
        await beforeReading(result.response);
        return result;
      },
    { relation: 'after', toMiddleware: 'deserializerMiddleware', name: 'beforeReading', override: true },
  );
}
