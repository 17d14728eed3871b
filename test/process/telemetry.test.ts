import { FaultError, faults } from '../../src/base/fault.ts';
import { expect, it } from 'vitest';
import { createTelemetry } from '../../src/process/metrics-and-log.ts';
import { outcomeKinds } from '../../src/events/outcome.ts';
import { dialects } from '../../src/events/record.ts';
import { seriesTable, type SeriesDefinition } from '../../src/process/telemetry.ts';
import { auditRecord, nastyKey } from '../support/fakes/control.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

type Line = Readonly<Record<string, unknown>>;

const table: Readonly<Record<string, SeriesDefinition>> = seriesTable;

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
    /** Name and labels of every sample of ours. */
    series: async (): Promise<readonly string[]> => {
      const lines = (await adapter.metricsText()).split('\n');
      return lines.filter((line) => line.startsWith('tally_')).map((line) => line.slice(0, line.lastIndexOf(' ')));
    },
  };
}

it('has every series at 0 from the start that is not read elsewhere', async () => {
  const world = createWorld();
  const text = await world.metricsText();
  const values = text.split('\n').filter((line) => line.startsWith('tally_'));
  expect(values.filter((line) => !line.endsWith(' 0'))).toEqual([]);
  for (const name of Object.keys(table)) expect(text).toContain(`# HELP ${name} `);
  for (const dialect of dialects) {
    for (const outcome of outcomeKinds) expect(await world.value(`tally_records_total{dialect="${dialect}",outcome="${outcome}"}`)).toBe(0);
  }
  for (const code of Object.keys(faults)) expect(await world.value(`tally_dead_letters_total{fault="${code}"}`)).toBe(0);
});

it('has one series for each combination of label values, and no other', async () => {
  const world = createWorld();
  for (const [name, { knownForMs }] of Object.entries(table))
    if (knownForMs !== undefined) world.telemetry.setCounts(name as 'tally_jobs', []);
  const all = await world.series();
  expect(new Set(all).size).toBe(all.length);
  for (const [name, { type, labels = {} }] of Object.entries(table)) {
    if (type === 'histogram') continue;
    const combinations = Object.values(labels).reduce((product, values) => product * values.length, 1);
    expect([name, all.filter((each) => each === name || each.startsWith(`${name}{`)).length]).toEqual([name, combinations]);
  }
});

it('makes no series of a value that the label’s set does not hold', async () => {
  const world = createWorld();
  for (const [name, { type }] of Object.entries(table)) if (type === 'gauge') world.telemetry.setCounts(name as 'tally_jobs', []);
  const before = await world.series();
  // what compiles is checked by types; this is what reaches the metrics at run time all the same
  const { count, set, setCounts } = world.telemetry as unknown as Record<string, (name: string, value: unknown, labels?: object) => void>;
  for (const [name, { labels = {} }] of Object.entries(table)) {
    const outside = Object.fromEntries(Object.keys(labels).map((label) => [label, 'from/outside']));
    if (Object.keys(labels).length === 0) continue;
    for (const change of [count, set]) {
      change?.(name, 1, outside);
      change?.(name, 1, {});
      change?.(name, 1);
    }
    setCounts?.(name, [outside, {}]);
  }
  expect(await world.series()).toEqual(before);
});

it('has no label for buckets, because everyone who reaches the health listener may read the metrics', () => {
  expect(Object.values(table).flatMap(({ labels = {} }) => Object.keys(labels))).not.toContain('bucket');
});

it('changes the series that is meant, whatever the order of its labels', async () => {
  const { telemetry, series, value } = createWorld();
  telemetry.setCounts('tally_queue_messages', []);
  const before = await series();
  telemetry.set('tally_queue_messages', 3, { queue: 'bucket', state: 'visible' });
  telemetry.set('tally_queue_messages', 4, { state: 'visible', queue: 'dead-letter' });
  telemetry.count('tally_records_total', 1, { outcome: 'written', dialect: 'native' });
  telemetry.count('tally_records_total', 2, { dialect: 'native', outcome: 'written' });
  telemetry.observe('tally_event_lag_seconds', 1.5);
  expect(await series()).toHaveLength(before.length);
  expect(await value('tally_queue_messages{queue="bucket",state="visible"}')).toBe(3);
  expect(await value('tally_queue_messages{state="visible",queue="dead-letter"}')).toBe(4);
  expect(await value('tally_records_total{dialect="native",outcome="written"}')).toBe(3);
  expect(await value('tally_event_lag_seconds_sum')).toBe(1.5);
});

it('Fix: shows no number of what was not read for two minutes, or never, and the other series of the gauge', async () => {
  const { telemetry, clock, series, value } = createWorld();
  const read = Object.entries(table).flatMap(([name, { knownForMs }]) => (knownForMs === undefined ? [] : [name]));
  expect((await series()).filter((each) => read.some((name) => each.startsWith(name)))).toEqual([]);
  const depthOf = (queue: string) => value(`tally_queue_messages{queue="${queue}",state="visible"}`);
  telemetry.set('tally_queue_messages', 7, { queue: 'bucket', state: 'visible' });
  // whatever else it has
  const bucket = { status: 'ok', bucket: 'photos' } as const;
  telemetry.setCounts('tally_buckets', [bucket]);
  telemetry.set('tally_compared_oldest_age_seconds', 5);
  await clock.advance(60_000);
  telemetry.set('tally_queue_messages', 3, { queue: 'dead-letter', state: 'visible' });
  await clock.advance(60_000);
  expect([await depthOf('bucket'), await depthOf('dead-letter')]).toEqual([7, 3]);
  expect([await value('tally_buckets{status="ok"}'), await value('tally_buckets{status="differs"}')]).toEqual([1, 0]);
  await clock.advance(1_000);
  expect([await depthOf('bucket'), await depthOf('dead-letter')]).toEqual([undefined, 3]);
  expect((await series()).filter((each) => /^tally_(buckets|compared)/.test(each))).toEqual([]);
  telemetry.set('tally_compared_oldest_age_seconds', 6);
  expect(await value('tally_compared_oldest_age_seconds')).toBe(6);
});

it('Fix: writes one line of JSON for each message, and escapes what a terminal would act on or hide in every text of it', () => {
  const { telemetry, text, lines } = createWorld('debug');
  const nasty = 'a\u009b31m\u202e\u200b\ufeff\u001b[2J"\n';
  for (const level of ['debug', 'info', 'warn', 'error'] as const) telemetry[level]('text', { nasty });
  telemetry.warnOnce('text', nasty, { nasty });
  telemetry.requestFailed(nasty, new FaultError('index.unreachable', nasty));
  expect(text).toHaveLength(6);
  for (const line of text) {
    expect(line).toMatch(/^[\x20-\x7e]*\n$/);
    expect(line).toContain(String.raw`a\\u{9b}31m\\u{202e}\\u{200b}\\u{feff}\\u{1b}[2J\"\\u{a}`);
  }
  const shown = String.raw`a\u{9b}31m\u{202e}\u{200b}\u{feff}\u{1b}[2J"\u{a}`;
  expect(lines()[3]).toMatchObject({ level: 'error', msg: 'text', nasty: shown });
  expect(Date.parse(String(lines()[3]?.time))).not.toBeNaN();
});

it('writes no password of a URL', () => {
  const { telemetry, text } = createWorld();
  telemetry.requestFailed('write', new FaultError('index.unreachable', 'no answer from https://admin:hunter2@search.example:9200'));
  telemetry.info('index store', { url: 'https://admin:hunter2@search.example:9200' });
  expect(text.join('')).not.toContain('hunter2');
  expect(text.join('')).toContain('search.example');
});

it('logs a failure that lasts once in ten minutes, with advice', async () => {
  const { telemetry, clock, lines } = createWorld();
  for (let second = 0; second < 1_300; second += 10) {
    telemetry.requestFailed('receive', new FaultError('queue.unreachable', 'ECONNREFUSED'));
    await clock.advance(10_000);
  }
  telemetry.requestFailed('receive', new FaultError('queue.unreachable', 'another reason'));
  expect(lines()).toHaveLength(4);
  const { advice } = faults['queue.unreachable'];
  const msg = 'request failed';
  expect(lines()[0]).toMatchObject({ level: 'error', msg, operation: 'receive', code: 'queue.unreachable', advice });
});

it('warns of each subject once in the interval: ten minutes if none is given', async () => {
  const { telemetry, clock, lines } = createWorld();
  const warn = (): void => {
    for (const eventName of ['Sung', 'Sung', 'Danced']) telemetry.warnOnce('unknown event', eventName, { eventName }, 3_600_000);
    for (const bucket of ['photos', 'photos']) telemetry.warnOnce('unconnected', bucket, { bucket });
  };
  const subjects = () => lines().map(({ eventName, bucket }) => eventName ?? bucket);
  warn();
  expect(subjects()).toEqual(['Sung', 'Danced', 'photos']);
  await clock.advance(600_000);
  warn();
  expect(subjects().slice(3)).toEqual(['photos']);
  await clock.advance(3_000_000);
  warn();
  expect(subjects().slice(4)).toEqual(['Sung', 'Danced', 'photos']);
});

it('warns of a bounded number of subjects, once that there are more, and of those again when their time is over', async () => {
  const { telemetry, clock, lines } = createWorld();
  const flood = (): void => {
    for (let index = 0; index < 5_000; index += 1) telemetry.warnOnce('unknown event ignored', `made up ${index}`, {});
  };
  flood();
  flood();
  expect(lines()).toHaveLength(1_001);
  expect(lines().at(-1)).toMatchObject({
    level: 'warn',
    kind: 'unknown event ignored',
    msg: 'too many different log lines of one kind were due: some of them are not logged',
  });
  await clock.advance(600_000);
  flood();
  expect(lines()).toHaveLength(2_002);
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
