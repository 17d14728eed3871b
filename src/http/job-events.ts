/**
 * One job as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): its state at once, then
 * again at each change, until it has ended.
 */
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { hasEnded } from '../domain/reindex/job.ts';
import { RequestError } from '../domain/request-error.ts';
import type { Control } from '../pipeline/control/control.ts';
import { LOOK_TIMEOUT_MS, watchJob, type JobNews } from '../pipeline/control/watch-job.ts';
import type { Clock } from '../pipeline/ports/clock.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { route, type RouteDescription } from './route.ts';
import { loggedProblemOf } from './server.ts';

/** A stream looks at its job once a second: what so many ask of the state store is no load. */
const STREAMS_MAX = 32;
/** Proxies close connections on which nothing is sent for 30 s or 60 s. */
const HEARTBEAT_MS = 15_000;
/** Before silence is told a look may fail in LOOK_TIMEOUT_MS, a second after the one before. */
const SILENCE_MS = HEARTBEAT_MS - LOOK_TIMEOUT_MS - 1_000;
/** How soon clients connect again when this process stops: another one may answer. */
const RETRY_MS = 2_000;
/** Whoever reads takes the end of a stream in no time; whoever does not is cut off. */
const DRAIN_MS = 250;
/** The event id of an end state. Whoever has it needs nothing more, and would connect again for ever. */
const END_ID = 'end';

interface JobEventsParts {
  readonly jobs: Pick<Control['jobs'], 'get'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Aborted when the listener closes: every stream ends. */
  readonly closing: AbortSignal;
}

export interface JobEvents {
  readonly route: RouteDescription;
  /**
   * Answers with the stream; 204 where Last-Event-ID says that the end was seen. Throws `request.too-many-streams`, and
   * what the first look at the job threw.
   */
  answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply>;
  /** After `closing`: resolves when every stream has ended, or soon at the latest. */
  drain(): Promise<void>;
}

/** Creates the route. A stream ends after the job's end state, when the caller has gone, and when the listener closes. */
export function createJobEvents({ jobs, clock, telemetry, closing }: JobEventsParts): JobEvents {
  const open = new Set<Promise<void>>();
  const events = route(['GET', '/v1/jobs/:id/events'], 'One re-index job as server-sent events, until it has ended.', {
    params: z.object({ id: z.string().min(1) }),
    query: z.strictObject({}),
    body: z.undefined(),
    media: 'text/event-stream',
    answer: z
      .string()
      .describe(
        '`event: job`: the job, without its examples, as JSON; at once and at each change, at most once a second. `event: problem`: it cannot be looked at for now. A comment every 15 s at least. Answered with 204 where Last-Event-ID is that of the end state.',
      ),
    verb: async ({ params }) => params.id,
  });

  /** Takes a place until the response is closed, and returns the signal of that. */
  function takePlace(reply: FastifyReply): AbortSignal {
    if (reply.raw.destroyed) throw new RequestError('request.interrupted', 'the caller has gone');
    if (open.size >= STREAMS_MAX) {
      throw new RequestError('request.too-many-streams', `${STREAMS_MAX} streams are open: close one, or ask GET /v1/jobs/ID now and then`);
    }
    const gone = new AbortController();
    const closed = Promise.withResolvers<void>();
    open.add(closed.promise);
    reply.raw.once('close', () => {
      open.delete(closed.promise);
      closed.resolve();
      gone.abort(new RequestError('request.interrupted', 'the caller has gone'));
    });
    return gone.signal;
  }

  return {
    route: events,
    async drain() {
      await Promise.race([Promise.all(open), delay(DRAIN_MS)]);
    },
    async answer(request, reply) {
      const id = await events.run(request, closing);
      const signal = AbortSignal.any([closing, takePlace(reply)]);
      const news = watchJob({ look: (limit) => jobs.get(id, limit), clock, silenceMs: SILENCE_MS }, signal);
      const first = await news.next();
      if (first.done === true) throw signal.reason;
      if (first.value.kind === 'trouble') throw first.value.error;
      if (isEnd(first.value) && request.headers['last-event-id'] === END_ID) return reply.code(204).send();
      // X-Accel-Buffering: nginx would hold the events back until it has enough of them
      void reply.type('text/event-stream; charset=utf-8').header('x-accel-buffering', 'no');
      return reply.send(Readable.from(framesOf(first.value, { news, telemetry })));
    },
  };
}

interface Frames {
  readonly news: AsyncIterable<JobNews>;
  readonly telemetry: Telemetry;
}

/** Read only as fast as the caller reads: for a slow one states are left out, never queued. */
async function* framesOf(first: JobNews, { news, telemetry }: Frames): AsyncGenerator<string, void, void> {
  yield `retry: ${RETRY_MS}\n\n`;
  yield frameOf(first, telemetry);
  try {
    for await (const each of news) yield frameOf(each, telemetry);
  } catch (error) {
    // the job is gone; whoever connects again is told so
    yield problemFrame(error, telemetry);
  }
}

function frameOf(news: JobNews, telemetry: Telemetry): string {
  switch (news.kind) {
    case 'job': {
      // up to 500 keys, which change seldom
      const { examples: _, ...job } = news.job;
      return `${isEnd(news) ? `id: ${END_ID}\n` : ''}event: job\ndata: ${JSON.stringify(job)}\n\n`;
    }
    case 'trouble':
      return problemFrame(news.error, telemetry);
    case 'silence':
      return ': nothing new\n\n';
  }
}

function problemFrame(error: unknown, telemetry: Telemetry): string {
  return `event: problem\ndata: ${JSON.stringify(loggedProblemOf(error, telemetry))}\n\n`;
}

function isEnd(news: JobNews): boolean {
  return news.kind === 'job' && hasEnded(news.job);
}
