import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FaultError } from '../../src/domain/fault.ts';
import type { Job } from '../../src/api/jobs.ts';
import { RequestError } from '../../src/domain/request-error.ts';
import { until } from '../support/servers/aws.ts';
import { listenControlPlane, type ControlPlane } from '../support/servers/control-plane.ts';
import { createFakeControl, job, runningJob, type FakeControl } from '../support/fakes/control.ts';
import { createFakeClock, createFakeTelemetry, type FakeClock, type FakeTelemetry } from '../support/fakes/ports.ts';

const done: Job = { ...runningJob, state: 'done', progress: 1 };
const PATH = '/v1/jobs/job-1/events';

let fake: FakeControl;
let clock: FakeClock;
let telemetry: FakeTelemetry;
let listener: ControlPlane;
let port: number;
/** What each look at the job finds; the last one stays. */
let course: (Job | Error)[];

beforeEach(async () => {
  fake = createFakeControl();
  clock = createFakeClock();
  telemetry = createFakeTelemetry();
  course = [runningJob];
  listener = await listenControlPlane({ operations: { ...fake.checked, getJob: look }, telemetry, clock });
  ({ port } = listener);
});

afterEach(() => listener.close());

let looks = 0;
async function look(): Promise<Job> {
  looks += 1;
  const [now = job] = course.length > 1 ? course.splice(0, 1) : course;
  if (now instanceof Error) throw now;
  return now;
}

interface Stream {
  readonly response: IncomingMessage;
  readonly status: number | undefined;
  /** What has come since the last time. */
  frames(): Promise<readonly string[]>;
  /** Resolves to all that came when the other side ended the stream. */
  readonly ended: Promise<string>;
  leave(): void;
}

async function open(headers: Readonly<Record<string, string>> = {}, { method = 'GET', path = PATH } = {}): Promise<Stream> {
  const sent = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: false });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  let read = 0;
  response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  response.on('error', () => undefined);
  const ended = once(response, 'end').then(() => text);
  ended.catch(() => undefined);
  return {
    response,
    status: response.statusCode,
    async frames() {
      // whatever was written before this answer came was written before it
      await ask('/livez');
      const fresh = text.slice(read);
      read = text.length;
      return fresh.split('\n\n').filter((frame) => frame !== '');
    },
    ended,
    leave: () => void sent.destroy(),
  };
}

/** Another request, on a connection of its own. */
async function ask(path: string): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const sent = httpRequest({ host: '127.0.0.1', port, path, agent: false });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += chunk;
  return { status: response.statusCode, body };
}

function frameOf(view: Job): string {
  return `event: job\ndata: ${JSON.stringify({ ...view, examples: undefined })}`;
}

describe('GET /v1/jobs/{id}/events', () => {
  it('tells the job at once, as server-sent events that no proxy holds back', async () => {
    const stream = await open();
    expect(stream.status).toBe(200);
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
    expect(await stream.frames()).toEqual(['retry: 2000', frameOf(runningJob)]);
  });

  it('tells each change within a second, and nothing where there is none', async () => {
    const later = { ...runningJob, progress: 0.5 };
    course = [runningJob, runningJob, later];
    const stream = await open();
    await stream.frames();
    await clock.advance(1_000);
    expect(await stream.frames()).toEqual([]);
    await clock.advance(1_000);
    expect(await stream.frames()).toEqual([frameOf(later)]);
  });

  it('looks at the job at most once a second', async () => {
    course = Array.from({ length: 60 }, (_, step) => ({ ...runningJob, progress: step / 100 }));
    const stream = await open();
    await stream.frames();
    await clock.advance(10_000);
    expect(await stream.frames()).toHaveLength(10);
  });

  it.each(['done', 'failed', 'cancelled'] as const)('ends when the job is %s', async (state) => {
    const end: Job = { ...done, state };
    course = [runningJob, end];
    const stream = await open();
    await stream.frames();
    await clock.advance(1_000);
    expect(await stream.ended).toBe(`retry: 2000\n\n${frameOf(runningJob)}\n\nid: end\n${frameOf(end)}\n\n`);
  });

  it('goes on while the job is paused: it may be resumed', async () => {
    course = [{ ...runningJob, state: 'paused', paused_because: 'deletion-limit' }, done];
    const stream = await open();
    await stream.frames();
    await clock.advance(1_000);
    expect(await stream.ended).toContain('"state":"done"');
  });

  it('tells whoever connects again the present state, and whoever has seen the end to stay away', async () => {
    const again = await open({ 'last-event-id': 'x' });
    expect(await again.frames()).toContain(frameOf(runningJob));
    course = [done];
    const late = await open();
    expect(await late.ended).toContain('id: end\n');
    const seen = await open({ 'last-event-id': 'end' });
    expect({ status: seen.status, text: await seen.ended }).toEqual({ status: 204, text: '' });
  });

  it('is never silent for longer than 15 s', async () => {
    const stream = await open();
    await stream.frames();
    for (let period = 0; period < 3; period += 1) {
      await clock.advance(15_000);
      const frames = await stream.frames();
      expect(frames.length).toBeGreaterThan(0);
      expect(frames.filter((frame) => frame !== ': nothing new')).toEqual([]);
    }
  });

  it('answers with a problem where the job cannot be looked at in the first place', async () => {
    course = [new RequestError('job.not-found', 'there is no job job-1')];
    expect(await ask(PATH)).toEqual({ status: 404, body: expect.stringContaining('"code":"job.not-found"') });
    course = [new FaultError('index.unreachable', 'no answer from https://tally:secret@index:9200')];
    const { status, body } = await ask(PATH);
    expect(status).toBe(503);
    expect(body).toContain('https://tally:***@index:9200');
  });

  it('tells once that the job cannot be looked at for now, and the job again when it can be', async () => {
    const down = new FaultError('index.unreachable', 'ECONNREFUSED');
    course = [runningJob, down, down, runningJob];
    const stream = await open();
    await stream.frames();
    await clock.advance(2_000);
    const [problem, ...rest] = await stream.frames();
    expect(problem).toMatch(/^event: problem\ndata: \{/);
    expect(JSON.parse(problem?.split('data: ')[1] ?? '')).toMatchObject({
      status: 503,
      code: 'index.unreachable',
      advice: expect.any(String),
    });
    expect(rest).toEqual([]);
    await clock.advance(1_000);
    expect(await stream.frames()).toEqual([frameOf(runningJob)]);
  });

  it('logs an unexpected error, and tells the caller nothing of it', async () => {
    course = [runningJob, new TypeError('secret of /etc/passwd'), runningJob];
    const stream = await open();
    await stream.frames();
    await clock.advance(1_000);
    const [problem] = await stream.frames();
    expect(problem).toContain('internal.unexpected');
    expect(problem).not.toContain('secret');
    expect(telemetry.recorded('requestFailed')).toHaveLength(1);
  });

  it('ends when the job is gone with its bucket', async () => {
    course = [runningJob, new RequestError('job.not-found', 'there is no job job-1')];
    const stream = await open();
    await stream.frames();
    await clock.advance(1_000);
    expect(await stream.ended).toMatch(/event: problem\ndata: .*"code":"job.not-found".*\n\n$/);
  });

  it('serves 32 at once and refuses more until one has left', async () => {
    const streams = await Promise.all(Array.from({ length: 32 }, () => open()));
    const { status, body } = await ask(PATH);
    expect({ status, body }).toEqual({ status: 429, body: expect.stringContaining('request.too-many-streams') });
    streams[0]?.leave();
    const refused = async (): Promise<boolean> => {
      const stream = await open();
      stream.leave();
      return stream.status === 429;
    };
    while (await refused()) await clock.advance(0);
    // neither a refusal nor a problem takes a place for good
    course = [new RequestError('job.not-found', 'there is no job job-1')];
    for (let attempt = 0; attempt < 40; attempt += 1) expect((await ask(PATH)).status).toBe(404);
  });

  it('Fix: refuses a second stream on one connection, so that no connection takes all of them', async () => {
    const socket = connect({ host: '127.0.0.1', port });
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    // 40 requests before the first answer
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`.repeat(40));
    await until('the first one is open', () => text.includes('event: job'));
    const others = await Promise.all(Array.from({ length: 31 }, () => open()));
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
    course = [done];
    await clock.advance(1_000);
    await until('the others of the connection are refused', () => text.split('request.too-many-streams').length === 40);
    socket.destroy();
  });

  it('looks no more at a job when the caller has gone', async () => {
    const stream = await open();
    await stream.frames();
    stream.leave();
    while (clock.sleepers() > 0) await ask('/livez');
    const before = looks;
    await clock.advance(10_000);
    expect(looks).toBe(before);
  });

  it('leaves out states that a slow caller has no time for', async () => {
    const large = (step: number): Job => ({ ...runningJob, progress: step / 1_000, requested_by: 'x'.repeat(4_000_000) });
    course = Array.from({ length: 200 }, (_, step) => large(step));
    const stream = await open();
    stream.response.pause();
    const before = looks;
    await clock.advance(100_000);
    expect(looks - before).toBeLessThan(20);
    stream.leave();
  });

  it('ends as it should when the listener closes', async () => {
    const stream = await open();
    await stream.frames();
    await listener.close();
    expect(await stream.ended).toBe(`retry: 2000\n\n${frameOf(runningJob)}\n\n`);
    expect(telemetry.recorded('requestFailed')).toEqual([]);
  });

  it('does not keep the listener from closing when a caller does not read', async () => {
    course = Array.from({ length: 200 }, (_, step) => ({ ...runningJob, progress: step, requested_by: 'x'.repeat(8_000_000) }));
    const stream = await open();
    stream.response.pause();
    await clock.advance(20_000);
    await listener.close();
    stream.leave();
  });

  it('answers HEAD with the headers alone', async () => {
    const { status, ended } = await open({}, { method: 'HEAD' });
    expect({ status, text: await ended }).toEqual({ status: 200, text: '' });
    while (clock.sleepers() > 0) await ask('/livez');
  });
});
