import { expect, it } from 'vitest';
import { createTelemetry } from '../../../src/adapters/telemetry/facts.ts';
import { seriesTable } from '../../../src/adapters/telemetry/series.ts';
import { adviceWhileServing, faults } from '../../../src/domain/fault.ts';
import { labelOf } from '../../../src/adapters/telemetry/labels.ts';
import { outcomeKinds } from '../../../src/domain/messages/outcome.ts';
import { dialects } from '../../../src/domain/events/record.ts';
import { auditRecord, nastyKey } from '../../support/fakes/control.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

type Line = Readonly<Record<string, unknown>>;

function createWorld(level = 'info') {
  const clock = createFakeClock();
  const text: string[] = [];
  const adapter = createTelemetry({ level, clock, destination: { write: (line: string) => void text.push(line) } });
  return {
    ...adapter,
    clock,
    text,
    lines: (): readonly Line[] => text.map((line) => JSON.parse(line) as Line),
    /** The value of one series, as Prometheus would read it. */
    value: async (series: string): Promise<number | undefined> => {
      const line = (await adapter.metricsText()).split('\n').find((each) => each.startsWith(`${series} `));
      return line === undefined ? undefined : Number(line.slice(series.length + 1));
    },
  };
}

it('has every series at 0 from the start', async () => {
  const world = createWorld();
  const text = await world.metricsText();
  const values = text.split('\n').filter((line) => line.startsWith('tally_'));
  expect(values.filter((line) => !line.endsWith(' 0'))).toEqual([]);
  for (const name of Object.keys(seriesTable)) expect(text).toContain(`# HELP ${name} `);
  for (const dialect of dialects) {
    for (const outcome of outcomeKinds.map((kind) => labelOf(kind)))
      expect(await world.value(`tally_records_total{dialect="${dialect}",outcome="${outcome}"}`)).toBe(0);
  }
  for (const code of Object.keys(faults)) expect(await world.value(`tally_dead_letters_total{fault="${code}"}`)).toBe(0);
});

it('offers Node’s own metrics too, and the content type of the text format', async () => {
  const world = createWorld();
  expect(await world.metricsText()).toContain('nodejs_eventloop_lag_seconds');
  expect(world.contentType).toMatch(/^text\/plain/);
});

it('Fix: escapes what a terminal would act on or hide in every text of a line', () => {
  const { telemetry, text } = createWorld('debug');
  const nasty = 'a\u009b31m\u202e\u200b\ufeff\u001b[2J';
  telemetry.unknownEvent(nasty);
  telemetry.recordEnded({ dialect: 'native', outcome: 'rejected', eventName: nasty, fault: 'record.invalid' });
  telemetry.gapSeen('photos', 'loss', nasty);
  telemetry.requestFailed(nasty, 'index.unreachable', nasty);
  telemetry.deadLettered({ code: 'record.invalid', reason: nasty, messageId: nasty });
  telemetry.warn('text', { nasty });
  expect(text).toHaveLength(6);
  for (const line of text) {
    expect(line.trimEnd()).toMatch(/^[\x20-\x7e]*$/);
    expect(line).toContain(String.raw`a\\u{9b}31m\\u{202e}\\u{200b}\\u{feff}\\u{1b}[2J`);
  }
});

it('counts what it is told', async () => {
  const { telemetry, value } = createWorld();
  telemetry.recordEnded({ dialect: 'native', outcome: 'written', eventName: 'ObjectCreated:Put' });
  telemetry.eventLag(1_500);
  telemetry.messageSettled('delete');
  telemetry.bulkSent({ actions: 10, sizeBytes: 2_000, durationMs: 30, result: 'index.overloaded' });
  telemetry.bulkAnswered('superseded', 4);
  telemetry.bulkQueue({ actionsQueued: 7, requestsInFlight: 2 });
  telemetry.headSent({ durationMs: 40, result: 'absent' });
  telemetry.heads({ queued: 5, inFlight: 3 });
  telemetry.held(12);
  telemetry.queueDepth('bucket', { visible: 100, inFlight: 20, delayed: 1 });
  telemetry.jobs(['queued', 'queued']);
  telemetry.unconnected('stray', 3);
  telemetry.workersWanted(4);
  telemetry.ready('ingest', true);
  expect(await value('tally_records_total{dialect="native",outcome="written"}')).toBe(1);
  expect(await value('tally_event_lag_seconds_sum')).toBe(1.5);
  expect(await value('tally_messages_total{settlement="delete"}')).toBe(1);
  expect(await value('tally_bulk_requests_total{result="index.overloaded"}')).toBe(1);
  expect(await value('tally_bulk_duration_seconds_sum')).toBe(0.03);
  expect(await value('tally_bulk_size_bytes_sum')).toBe(2_000);
  expect(await value('tally_bulk_actions_total{answer="stale"}')).toBe(4);
  expect(await value('tally_bulk_queued_actions')).toBe(7);
  expect(await value('tally_bulk_in_flight_requests')).toBe(2);
  expect(await value('tally_head_requests_total{result="absent"}')).toBe(1);
  expect(await value('tally_head_queued_requests')).toBe(5);
  expect(await value('tally_head_in_flight_requests')).toBe(3);
  expect(await value('tally_held_messages')).toBe(12);
  expect(await value('tally_queue_messages{queue="bucket",state="in-flight"}')).toBe(20);
  expect(await value('tally_jobs{state="queued"}')).toBe(2);
  expect(await value('tally_unconnected_records_total')).toBe(3);
  expect(await value('tally_workers_wanted')).toBe(4);
  expect(await value('tally_ready{role="ingest"}')).toBe(1);
});

it('takes an event from the future for one without lag', async () => {
  const { telemetry, value } = createWorld();
  telemetry.eventLag(-5_000);
  expect(await value('tally_event_lag_seconds_sum')).toBe(0);
});

it('shows one state of receiving at a time', async () => {
  const { telemetry, value } = createWorld();
  telemetry.receiving('on');
  telemetry.receiving('held-full');
  expect(await value('tally_receiving{state="on"}')).toBe(0);
  expect(await value('tally_receiving{state="held-full"}')).toBe(1);
});

it('forgets the gaps that closed', async () => {
  const { telemetry, value } = createWorld();
  telemetry.gapsOpen([{ kind: 'loss', count: 2, oldestAgeMs: 90_000 }]);
  expect(await value('tally_gaps_open{kind="loss"}')).toBe(2);
  expect(await value('tally_gaps_oldest_age_seconds{kind="loss"}')).toBe(90);
  telemetry.gapsOpen([]);
  expect(await value('tally_gaps_open{kind="loss"}')).toBe(0);
  expect(await value('tally_gaps_oldest_age_seconds{kind="loss"}')).toBe(0);
});

it('counts the connections by state, and the longest pause', async () => {
  const { telemetry, value } = createWorld();
  telemetry.connections(['ok', 'broken', 'broken'], 90_000);
  expect(await value('tally_connection_state{state="broken"}')).toBe(2);
  expect(await value('tally_connection_state{state="ok"}')).toBe(1);
  expect(await value('tally_notification_pause_age_seconds')).toBe(90);
  telemetry.connections([], 0);
  expect(await value('tally_connection_state{state="broken"}')).toBe(0);
  expect(await value('tally_notification_pause_age_seconds')).toBe(0);
});

it('Fix: names no bucket in the metrics, which everyone may read who reaches the health listener', async () => {
  const world = createWorld();
  const { telemetry } = world;
  const bucket = 'a-secret-bucket';
  telemetry.gapsOpen([{ kind: 'loss', count: 2, oldestAgeMs: 0 }]);
  telemetry.gapSeen(bucket, 'loss', 'reason');
  telemetry.unconnected(bucket, 1);
  telemetry.circuitOpened({ level: 'bucket', name: bucket, code: 'bucket.missing', reason: 'reason' });
  telemetry.bucketConnected(bucket, 'test');
  telemetry.enriched({ bucket, enrich: 'head', result: 'object.denied', reason: 'reason' });
  telemetry.sweepEnded({ sweep: 'tombstones', bucket, result: 'ok', objects: 3 });
  expect(await world.metricsText()).not.toContain(bucket);
  expect(Object.values(seriesTable).flatMap(({ labels }) => Object.keys(labels))).not.toContain('bucket');
});

it('shows the greatest age of a message told lately, and 0 when none was', async () => {
  const { telemetry, clock, value } = createWorld();
  const age = () => value('tally_queue_oldest_message_age_seconds');
  telemetry.oldestMessageAge(9_000);
  telemetry.oldestMessageAge(2_000);
  expect(await age()).toBe(9);
  await clock.advance(20_000);
  expect(await age()).toBe(0);
  telemetry.oldestMessageAge(1_000);
  expect(await age()).toBe(1);
});

it('falls back to the age of younger messages when the oldest was told too long ago', async () => {
  const { telemetry, clock, value } = createWorld();
  const age = () => value('tally_queue_oldest_message_age_seconds');
  for (const ageMs of [9_000, 5_000, 7_000, 3_000]) {
    telemetry.oldestMessageAge(ageMs);
    await clock.advance(4_000);
  }
  expect(await age()).toBe(7);
  await clock.advance(7_000);
  expect(await age()).toBe(3);
  await clock.advance(4_000);
  expect(await age()).toBe(0);
});

it('says with a pause what it is and what to do, and that it ended', async () => {
  const { telemetry, lines, value } = createWorld();
  telemetry.circuitOpened({ level: 'cluster', name: '', code: 'index.unreachable', reason: 'connect ECONNREFUSED' });
  expect(await value('tally_paused{fault="index.unreachable"}')).toBe(1);
  telemetry.circuitClosed({ level: 'cluster', name: '', openMs: 12_000 });
  expect(await value('tally_paused{fault="index.unreachable"}')).toBe(0);
  const advice = adviceWhileServing('index.unreachable');
  expect(lines()).toMatchObject([
    { level: 'error', code: 'index.unreachable', reason: 'connect ECONNREFUSED', advice, msg: 'receiving paused' },
    { level: 'info', openMs: 12_000, msg: 'receiving resumed' },
  ]);
});

it('says a failure that goes on once in ten minutes', async () => {
  const { telemetry, clock, lines } = createWorld();
  for (let second = 0; second < 1_300; second += 10) {
    telemetry.requestFailed('receive', 'queue.unreachable', 'ECONNREFUSED');
    await clock.advance(10_000);
  }
  telemetry.requestFailed('receive', 'queue.unreachable', 'another reason');
  expect(lines()).toHaveLength(4);
});

it('says an unknown event once an hour for each name, and counts each', async () => {
  const { telemetry, clock, lines, value } = createWorld();
  for (const name of ['ObjectSung', 'ObjectSung', 'ObjectDanced']) telemetry.unknownEvent(name);
  expect(lines()).toHaveLength(2);
  await clock.advance(3_600_000);
  telemetry.unknownEvent('ObjectSung');
  expect(lines()).toHaveLength(3);
  expect(await value('tally_unknown_events_total')).toBe(4);
});

it('writes the names of events so that no terminal acts on them', () => {
  const { telemetry, lines } = createWorld('debug');
  const eventName = 'Sung\u0085\u009b2J\u202e';
  telemetry.unknownEvent(eventName);
  telemetry.recordEnded({ dialect: 'native', outcome: 'rejected', eventName, fault: 'record.invalid' });
  telemetry.gapSeen('photos', 'bulk-delete', eventName);
  expect(JSON.stringify(lines())).not.toMatch(/[\u0080-\u009f\u202e]/);
  expect(lines()[0]).toMatchObject({ eventName: 'Sung\\u{85}\\u{9b}2J\\u{202e}' });
});

it('says a bounded number of names, once that there are more, and those again when their time is over', async () => {
  const { telemetry, clock, lines, value } = createWorld();
  const flood = (): void => {
    for (let index = 0; index < 5_000; index += 1) telemetry.unknownEvent(`made up ${index}`);
  };
  flood();
  flood();
  expect(lines()).toHaveLength(1_001);
  expect(lines().at(-1)).toMatchObject({
    level: 'warn',
    kind: 'unknown event',
    msg: 'too many different log lines of one kind were due: some of them are not logged',
  });
  await clock.advance(3_600_000);
  flood();
  expect(lines()).toHaveLength(2_002);
  expect(await value('tally_unknown_events_total')).toBe(15_000);
});

it('is silenced in one kind of fact only', () => {
  const { telemetry, lines } = createWorld();
  for (let index = 0; index < 2_000; index += 1) telemetry.unconnected(`bucket-${index}`, 1);
  const before = lines().length;
  telemetry.unknownEvent('ObjectSung');
  telemetry.gapSeen('photos', 'loss', 'a dead letter');
  telemetry.requestFailed('receive', 'queue.unreachable', 'ECONNREFUSED');
  expect(lines()).toHaveLength(before + 3);
});

it('counts a bucket as waiting until nothing of it is out of order', async () => {
  const { telemetry, value } = createWorld();
  const parked = () => value('tally_parked_buckets');
  const open = (level: 'index' | 'bucket' | 'endpoint', name: string) =>
    telemetry.circuitOpened({ level, name, code: 'bucket.missing', reason: '404' });
  const close = (level: 'index' | 'bucket' | 'endpoint', name: string) => telemetry.circuitClosed({ level, name, openMs: 1 });
  open('index', 'photos');
  open('bucket', 'photos');
  open('bucket', 'videos');
  open('endpoint', 'eu-central-1');
  expect(await parked()).toBe(2);
  expect(await value('tally_circuit_open{system="s3",level="bucket"}')).toBe(2);
  expect(await value('tally_circuit_open{system="s3",level="whole"}')).toBe(1);
  close('index', 'photos');
  expect(await parked()).toBe(2);
  expect(await value('tally_circuit_open{system="index",level="bucket"}')).toBe(0);
  close('bucket', 'photos');
  close('bucket', 'videos');
  close('endpoint', 'eu-central-1');
  expect(await parked()).toBe(0);
  expect(await value('tally_circuit_open{system="s3",level="whole"}')).toBe(0);
});

it('Fix: shows the pause of receiving for which the indices of all buckets are the reason', async () => {
  const { telemetry, value } = createWorld();
  const paused = () => value('tally_paused{fault="bucket.index-blocked"}');
  expect(await paused()).toBe(0);
  telemetry.circuitOpened({ level: 'cluster', name: '', code: 'bucket.index-blocked', reason: 'the flood stage' });
  expect(await paused()).toBe(1);
  telemetry.circuitClosed({ level: 'cluster', name: '', openMs: 1 });
  expect(await paused()).toBe(0);
});

it('Fix: counts a look at a bucket that denies HeadBucket', async () => {
  const { telemetry, value } = createWorld();
  telemetry.headSent({ durationMs: 40, result: 'bucket.denied' });
  expect(await value('tally_head_requests_total{result="bucket.denied"}')).toBe(1);
});

it('writes one line of JSON for each fact, whatever is in a field', () => {
  const { telemetry, text, lines } = createWorld();
  const reason = 'no key "a\nb\u001b[2J"';
  const shown = String.raw`no key "a\u{a}b\u{1b}[2J"`;
  telemetry.deadLettered({ code: 'record.invalid', reason, messageId: 'm-1' });
  expect(text).toHaveLength(1);
  expect(text[0]).not.toContain('\u001b');
  expect(text[0]?.indexOf('\n')).toBe(text[0]!.length - 1);
  expect(lines()[0]).toMatchObject({ level: 'error', code: 'record.invalid', reason: shown, messageId: 'm-1' });
  expect(Date.parse(String(lines()[0]?.time))).not.toBeNaN();
});

it('writes no password of a URL', () => {
  const { telemetry, text } = createWorld();
  telemetry.requestFailed('write', 'index.unreachable', 'no answer from https://admin:hunter2@search.example:9200');
  telemetry.info('index store', { url: 'https://admin:hunter2@search.example:9200' });
  expect(text.join('')).not.toContain('hunter2');
  expect(text.join('')).toContain('search.example');
});

it.each([
  ['silent', 0],
  ['error', 1],
  ['info', 2],
])('writes at level %s what is at least as severe', (level, count) => {
  const { telemetry, text } = createWorld(level);
  telemetry.info('a fact');
  telemetry.circuitOpened({ level: 'index', name: 'photos', code: 'bucket.index-blocked', reason: 'read-only' });
  expect(text).toHaveLength(count);
});

it('counts how documents were enriched, and says once for each bucket why some are not', async () => {
  const { telemetry, clock, lines, text, value } = createWorld();
  const denied = { bucket: 'photos', enrich: 'tags', result: 'object.denied' } as const;
  telemetry.enriched({ bucket: 'photos', enrich: 'head', result: 'ok' });
  telemetry.enriched({ bucket: 'photos', enrich: 'head', result: 'gone' });
  telemetry.enriched({ ...denied, reason: 'GetObjectTagging photos a: 403' });
  telemetry.enriched({ ...denied, reason: 'GetObjectTagging photos b: 403' });
  telemetry.enriched({ ...denied, bucket: 'other' });
  telemetry.enriched({ bucket: 'photos', enrich: 'tags', result: 'paused' });
  expect(await value('tally_enrich_total{enrich="head",result="ok"}')).toBe(1);
  expect(await value('tally_enrich_total{enrich="head",result="gone"}')).toBe(1);
  expect(await value('tally_enrich_total{enrich="tags",result="object.denied"}')).toBe(3);
  expect(await value('tally_enrich_total{enrich="tags",result="paused"}')).toBe(1);
  const { advice } = faults['object.denied'];
  const msg = 'documents are written without enrichment';
  expect(lines()).toMatchObject([
    { level: 'warn', msg, bucket: 'photos', enrich: 'tags', result: 'object.denied', reason: 'GetObjectTagging photos a: 403', advice },
    { level: 'warn', msg, bucket: 'other', result: 'object.denied', advice },
    { level: 'warn', msg, bucket: 'photos', result: 'paused' },
  ]);
  text.length = 0;
  await clock.advance(600_000);
  telemetry.enriched(denied);
  expect(lines()).toHaveLength(1);
});

it('counts each span that is dropped, and tells it once a minute by reason', async () => {
  const { tracingTelemetry, clock, lines, value } = createWorld();
  for (let each = 0; each < 100; each += 1) tracingTelemetry.spansDropped('queue-full', 1);
  tracingTelemetry.spansDropped('export-failed', 512, 'HTTP 503');
  tracingTelemetry.spansDropped('export-failed', 512, 'ECONNREFUSED');
  tracingTelemetry.tracingTroubled('one thing');
  tracingTelemetry.tracingTroubled('another');
  expect(await value('tally_spans_dropped_total{reason="queue-full"}')).toBe(100);
  expect(await value('tally_spans_dropped_total{reason="export-failed"}')).toBe(1_024);
  expect(lines().map(({ level, reason, error, text }) => [level, reason, error, text])).toEqual([
    ['warn', 'queue-full', undefined, undefined],
    ['warn', 'export-failed', 'HTTP 503', undefined],
    ['warn', undefined, undefined, 'one thing'],
  ]);
  await clock.advance(60_000);
  tracingTelemetry.spansDropped('export-failed', 1, 'ECONNREFUSED');
  expect(lines().at(-1)).toMatchObject({ reason: 'export-failed', error: 'ECONNREFUSED' });
  expect(lines()).toHaveLength(4);
});

it.each(['info', 'error', 'fatal'])('logs each audit record as one line, whatever the level: %s', (level) => {
  const { telemetry, text, lines } = createWorld(level);
  telemetry.info('not an audit record');
  telemetry.audited({ ...auditRecord, parameters: { key: nastyKey } });
  const [line, ...more] = lines().filter(({ audit }) => audit === true);
  expect(more).toEqual([]);
  expect(line).toMatchObject({
    level: 'info',
    msg: 'audit record',
    id: auditRecord.id,
    eventname: 'BucketRemove',
    outcome: 'failed',
    date: '2026/01/02',
    useridentity: '{"email":"alice@build-1","sessionContext":{"auth":{"type":"local"}}}',
  });
  for (const unsafe of ['\u001b', '\u202e']) expect(text.join('')).not.toContain(unsafe);
  expect(lines().filter(({ audit }) => audit !== true)).toHaveLength(level === 'info' ? 1 : 0);
});

it('logs no audit record in a process that logs nothing', () => {
  const { telemetry, text } = createWorld('silent');
  telemetry.audited(auditRecord);
  expect(text).toEqual([]);
});
