import { expect, it } from 'vitest';
import { createTelemetry } from '../../src/process/metrics-and-log.ts';
import { faults, type FaultCode } from '../../src/base/fault.ts';
import { reportClosed, reportOpened, type CircuitLevel } from '../../src/observing/circuits.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

interface Open {
  readonly level: CircuitLevel;
  readonly name: string;
  readonly fault: { readonly code: FaultCode; readonly reason: string };
}

/** The real metrics and log, and circuits that open and close by hand. */
function setUp() {
  const text: string[] = [];
  const destination = { write: (line: string) => void text.push(line) };
  const adapter = createTelemetry({ level: 'info', clock: createFakeClock(), destination });
  const { telemetry } = adapter;
  const metricsText = (): Promise<string> => adapter.metricsText();
  let all: readonly Open[] = [];
  return {
    metricsText,
    lines: () => text.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>),
    value: async (series: string): Promise<number> => {
      const line = (await metricsText()).split('\n').find((each) => each.startsWith(`${series} `));
      return Number(line?.slice(series.length + 1));
    },
    open: (level: CircuitLevel, name: string, code: FaultCode = 'bucket.missing'): void => {
      const circuit = { level, name, fault: { code, reason: 'as scripted' } };
      all = [...all, circuit];
      reportOpened(telemetry, circuit, all);
    },
    close: (level: CircuitLevel, name: string): void => {
      all = all.filter((each) => each.level !== level || each.name !== name);
      reportClosed(telemetry, { level, name }, 12_000, all);
    },
  };
}

it.each<FaultCode>(['index.unreachable', 'index.blocked'])(
  'says with a pause what it is and what to do, and that it ended (%s)',
  async (code) => {
    const { open, close, lines, value } = setUp();
    const paused = () => value(`tally_paused{fault="${code}"}`);
    expect(await paused()).toBe(0);
    open('cluster', '', code);
    expect(await paused()).toBe(1);
    close('cluster', '');
    expect(await paused()).toBe(0);
    expect(lines()).toMatchObject([
      { level: 'error', code, reason: 'as scripted', advice: faults[code].advice, msg: 'receiving paused' },
      { level: 'info', openMs: 12_000, msg: 'receiving resumed' },
    ]);
  },
);

it('names the bucket in the command that mends its index', () => {
  const { open, lines } = setUp();
  open('index', 'photos', 'bucket.index-missing');
  expect(lines()).toMatchObject([{ bucket: 'photos', advice: expect.stringContaining('bucket add photos`') }]);
});

it('counts a bucket as waiting until both its circuits are closed, and none for its enrichment; buckets and regions are named in the log alone', async () => {
  const { open, close, value, lines, metricsText } = setUp();
  const parked = () => value('tally_parked_buckets');
  open('index', 'photos');
  open('bucket', 'photos');
  open('bucket', 'videos');
  open('enrichment', 'music');
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
  const named = lines().map(({ bucket, region }) => bucket ?? region);
  expect(named).toEqual(['photos', 'photos', 'videos', 'music', 'eu-central-1', 'photos', 'photos', 'videos', 'eu-central-1']);
  expect(await metricsText()).not.toMatch(/photos|eu-central-1/);
});
