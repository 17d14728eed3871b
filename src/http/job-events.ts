/**
 * One job as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): its state at the
 * beginning and after each change, until it has ended.
 */
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../api/contract.ts';
import { type Job, jobStreamRows } from '../api/jobs.ts';
import { checkRequest } from '../api/row.ts';
import type { Actor } from '../domain/identity/actor.ts';
import { hasEnded } from '../domain/reindex/job.ts';
import { RequestError } from '../domain/request-error.ts';
import { LOOK_TIMEOUT_MS, watchJob, type JobNews } from '../pipeline/control/watch-job.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { Callers } from './caller.ts';
import { loggedProblemOf } from './server.ts';
import type { WithPorts } from '../pipeline/ports/ports.ts';

/** The most streams that are open at the same time. Each reads its job once a second, which is a small load for the state store. */
const STREAMS_MAX = 32;
/** Those of one user, with all sessions and API keys: more than the tabs and scripts of a person, and few enough that no one takes all of them. */
const STREAMS_OF_USER_MAX = 8;
/** Proxies close connections on which nothing is sent for 30 s or 60 s. */
const HEARTBEAT_MS = 15_000;
/** The read before a heartbeat may take LOOK_TIMEOUT_MS and begins a second after the read before it. */
const SILENCE_MS = HEARTBEAT_MS - LOOK_TIMEOUT_MS - 1_000;
/** How soon clients reconnect after this process has stopped, because another process may answer. */
const RETRY_MS = 2_000;
/** A client that reads receives the end of a stream immediately; the connection of one that does not read is closed after this time. */
const DRAIN_MS = 250;
/** How often a stream asks again whether its caller may read the job: with each look, because what is known of an API key may be 3.5 s old, and revoked and disabled callers are refused within 5 s. */
const ADMITTED_MS = 1_000;
/** The event id of an end state. Clients reconnect after every end and send this id, so that the answer 204 makes them stop. */
const END_ID = 'end';

const row = jobStreamRows['GET /v1/jobs/{id}/events'];

interface JobEventsParts extends WithPorts<'clock' | 'telemetry'> {
  readonly getJob: (id: string, context: Context) => Promise<Job>;
  readonly callers: Pick<Callers, 'admit' | 'actorOf'>;
  /** Aborted when the listener closes, which ends every stream. */
  readonly closing: AbortSignal;
}

interface JobEvents {
  /**
   * Answers with the stream, or with 204 if Last-Event-ID shows that the client has received the end. Throws
   * `request.too-many-streams`, and the error of the first read of the job.
   */
  answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply>;
  /** Resolves when every stream has ended, at most a fraction of a second after `closing` was aborted. */
  drain(): Promise<void>;
}

/** Creates the streams. A stream ends after the end state of its job, when the client disconnects, and when the listener closes. */
export function createJobEvents({ getJob, callers, clock, telemetry, closing }: JobEventsParts): JobEvents {
  const open = new Set<Promise<void>>();
  /** The connections of the open streams. */
  const connections = new WeakSet<Socket>();
  /** The number of open streams of each user. */
  const ofUsers = new Map<string, number>();

  /** Counts a stream of its user, and returns what ends that. A caller without a user is on this machine, and not limited beyond all. */
  function countOfUser(actor: Actor): () => void {
    if (actor.kind === 'local') return () => undefined;
    const { userId } = actor;
    const count = ofUsers.get(userId) ?? 0;
    if (count >= STREAMS_OF_USER_MAX) {
      throw new RequestError(
        'request.too-many-streams',
        `you have ${STREAMS_OF_USER_MAX} open streams: close one, or poll GET /v1/jobs/{id} instead`,
      );
    }
    ofUsers.set(userId, count + 1);
    return () => {
      const left = (ofUsers.get(userId) ?? 1) - 1;
      if (left === 0) ofUsers.delete(userId);
      else ofUsers.set(userId, left);
    };
  }

  /** Counts a stream until its response is closed, and returns a signal that is aborted then. */
  function countStream(request: FastifyRequest, reply: FastifyReply): AbortSignal {
    if (reply.raw.destroyed) throw new RequestError('request.interrupted', 'the caller closed the connection');
    if (open.size >= STREAMS_MAX) {
      throw new RequestError('request.too-many-streams', `${STREAMS_MAX} streams are open: close one, or poll GET /v1/jobs/{id} instead`);
    }
    const { socket } = request.raw;
    // it was sent before the first one ended, and could only be answered after it
    if (connections.has(socket)) throw new RequestError('request.too-many-streams', 'a stream is open on this connection already');
    const leave = countOfUser(callers.actorOf(request));
    connections.add(socket);
    const gone = new AbortController();
    const closed = Promise.withResolvers<void>();
    open.add(closed.promise);
    reply.raw.once('close', () => {
      open.delete(closed.promise);
      connections.delete(socket);
      leave();
      closed.resolve();
      gone.abort(new RequestError('request.interrupted', 'the caller closed the connection'));
    });
    return gone.signal;
  }

  return {
    async drain() {
      await Promise.race([Promise.all(open), delay(DRAIN_MS)]);
    },
    async answer(request, reply) {
      const id = idOf(request);
      const signal = AbortSignal.any([closing, countStream(request, reply)]);
      const actor = callers.actorOf(request);
      let admittedAtMs = clock.monotonicMs();
      const look = async (limit: AbortSignal): Promise<Job> => {
        // a stream lives for hours; its caller may lose the session, the key or the role meanwhile
        if (clock.monotonicMs() - admittedAtMs >= ADMITTED_MS) {
          await callers.admit(request, row);
          admittedAtMs = clock.monotonicMs();
        }
        return getJob(id, { actor, signal: limit });
      };
      const news = watchJob({ look, clock, silenceMs: SILENCE_MS }, signal);
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

function idOf(request: FastifyRequest): string {
  const { params } = checkRequest(row, request);
  return row.params.parse(params).id;
}

interface Frames {
  readonly news: AsyncIterable<JobNews>;
  readonly telemetry: Telemetry;
}

/** Yields events only as fast as the client reads them. A slow client misses states; they are never queued. */
async function* framesOf(first: JobNews, { news, telemetry }: Frames): AsyncGenerator<string, void, void> {
  yield `retry: ${RETRY_MS}\n\n`;
  yield frameOf(first, telemetry);
  try {
    for await (const each of news) yield frameOf(each, telemetry);
  } catch (error) {
    // the job is gone; a client that connects again gets the same answer
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
