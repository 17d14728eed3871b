/**
 * The composition root of `tally serve`: every part is built once and joined by hand. Parts start in the order they are
 * needed and stop in reverse:
 *
 *   serve lock → embedded AWS → tracing → health listener → control plane → store prepared → watches → reindex → ingest
 */
import packageJson from '../../package.json' with { type: 'json' };
import type { Embedded } from '../adapters/embedded/server.ts';
import { acquireServeLock } from '../adapters/sqlite/serve-lock.ts';
import { systemClock } from '../adapters/system-clock.ts';
import { createTelemetry, type TelemetryAdapter } from '../adapters/telemetry/facts.ts';
import { startCalendar } from './calendar.ts';
import { ingestParts } from './ingest.ts';
import { createReindexing } from './reindex.ts';
import type { AwsEnvironment, Settings } from '../settings/settings.ts';
import type { ServeEnvironment } from '../settings/traces.ts';
import { awsAddresses, createCore, queuesOf, sqlitePath, type Core } from './core.ts';
import { createControlPlane } from '../http/control-plane.ts';
import { createHealthListener } from '../http/health-listener.ts';
import type { Address, Listener } from '../http/server.ts';
import { bucketRecordSchema } from '../domain/bucket.ts';
import { faultOf, faults, type Fault } from '../domain/fault.ts';
import { createCatchUp } from '../pipeline/buckets/embedded-catch-up.ts';
import { createFaultGate, type Probe } from '../pipeline/serving/fault-gate.ts';
import { createLetterBrowser } from '../pipeline/letters/browser.ts';
import { createMovedLetters } from '../pipeline/letters/moved.ts';
import { createIngestRole } from '../pipeline/ingest/role.ts';
import { createLiveLoad } from '../pipeline/serving/live-load.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { Tracing } from '../pipeline/ports/tracing.ts';
import { createReadiness } from '../pipeline/serving/readiness.ts';
import { repeat } from '../pipeline/serving/repeat.ts';
import { servingChecks } from '../pipeline/ingest/readiness-checks.ts';
import { listAllRecords } from '../pipeline/records/stored.ts';
import { watchState } from '../pipeline/buckets/watch.ts';
import { createWorkerDemand } from '../pipeline/serving/worker-demand.ts';
import { startTracing } from './tracing.ts';
import { welcome } from './welcome.ts';

const version = packageJson.version;
const EMBEDDED_BUCKET = 'demo';
/** How often an idle process looks whether its index still answers. */
const INDEX_WATCH_MS = 5_000;
/** Readiness and the workers wanted as metrics: as often as the queue depths change. */
const READINESS_MS = 15_000;
/** Letters that SQS moved are looked for this often: a gap should be known within a minute or so. */
const MOVED_LETTERS_MS = 30_000;
/** Seldom enough to be no load on the state, often enough for a person who asks whether events arrive. */
const LAST_EVENTS_MS = 60_000;
/** What is kept of the shutdown time for closing after the messages in hand had theirs. */
const CLOSING_MS = 1_500;

/** A reason not to start that the operator must correct: told in one line, exit code 78 (EX_CONFIG). */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}

export interface App {
  /** Resolves when every part runs. Rejects with {@link StartError} or a fault; what had started is stopped then. */
  start(): Promise<void>;
  /** Stops in reverse order within TALLY_SHUTDOWN_TIMEOUT_MS. */
  stop(): Promise<void>;
}

/** Builds a serving process. `print` shows people where things are (the embedded mode only). */
export function createApp(settings: Settings, environment: ServeEnvironment, print: (text: string) => void): App {
  const telemetryAdapter = createTelemetry({ level: settings.TALLY_LOG_LEVEL, clock: systemClock });
  const stops: (() => Promise<void>)[] = [];
  let stoppedByMs = Infinity;

  async function stop(): Promise<void> {
    stoppedByMs = Math.min(stoppedByMs, systemClock.monotonicMs() + settings.TALLY_SHUTDOWN_TIMEOUT_MS);
    for (const stopPart of stops.splice(0).reverse()) await stopPart();
  }

  return {
    async start() {
      try {
        takeServeLock(settings, stops);
        const embedded = settings.TALLY_EMBEDDED ? await startEmbeddedAws(settings, environment, telemetryAdapter.telemetry) : undefined;
        if (embedded !== undefined) stops.push(() => embedded.stop());
        const { tracing, stop: stopTracing } = await startTracing({ settings, environment, version, ...telemetryAdapter });
        stops.push(() => stopTracing(stoppedByMs - systemClock.monotonicMs()));
        const serving = await createServing({ settings, environment, telemetryAdapter, embedded, tracing });
        await serving.start(stops);
        if (embedded !== undefined) print(welcome(settings, { endpoint: embedded.endpoint, bucket: EMBEDDED_BUCKET }));
      } catch (error) {
        await stop();
        throw error;
      }
    },
    stop,
  };
}

/** Two serving processes on one SQLite file would index twice and delete each other's provisional work. */
function takeServeLock(settings: Settings, stops: (() => Promise<void>)[]): void {
  const path = sqlitePath(settings);
  if (path === undefined) return;
  const lock = acquireServeLock(path);
  if (lock === 'held') {
    throw new StartError(
      `TALLY_INDEX_URL: ${path} is served by another tally process: stop it, or use another file (commands like tally search can share it)`,
    );
  }
  stops.push(async () => lock.release());
}

async function startEmbeddedAws(settings: Settings, environment: AwsEnvironment, log: Telemetry): Promise<Embedded> {
  const { EmbeddedStartError, startEmbedded } = await import('../adapters/embedded/server.ts');
  try {
    return await startEmbedded({
      ...settings.TALLY_EMBEDDED_ADDRESS,
      dataDir: settings.TALLY_EMBEDDED_DATA,
      region: environment.region,
      bucket: EMBEDDED_BUCKET,
      clock: systemClock,
      log,
    });
  } catch (error) {
    if (error instanceof EmbeddedStartError) throw new StartError(error.message);
    throw error;
  }
}

interface ServingParts {
  readonly settings: Settings;
  readonly environment: AwsEnvironment;
  readonly telemetryAdapter: TelemetryAdapter;
  readonly embedded: Embedded | undefined;
  readonly tracing: Tracing;
}

/** The process's own parts, once the serve lock and the embedded AWS are there. */
async function createServing({ settings, environment, telemetryAdapter, embedded, tracing }: ServingParts): Promise<{
  start(stops: (() => Promise<void>)[]): Promise<void>;
}> {
  const { telemetry } = telemetryAdapter;
  const clock = systemClock;
  const queues = queuesOf(settings, embedded);
  const core = await createCore(settings, awsAddresses(settings, environment, embedded?.endpoint), { queues, telemetry, tracing });
  const stopping = new AbortController();
  const gate = createFaultGate({ clock, telemetry, stopped: stopping.signal });
  const probeIndex: Probe = (signal) => core.store.objects.probe(signal);
  const ingests = settings.TALLY_ROLES.includes('ingest');
  const live = createLiveLoad({ clock, heldMax: settings.TALLY_INGEST_HELD_MAX, bulkConcurrency: settings.TALLY_BULK_CONCURRENCY });
  const liveTelemetry = live.watching(telemetry);
  const ingest = ingests
    ? createIngestRole(ingestParts({ settings, core, queues, gate, probeIndex, telemetry: liveTelemetry, tracing }), stopping)
    : undefined;
  const reindexing = createReindexing({ settings, core, queues, gate, telemetry, liveIsBusy: live.isBusy });
  let prepared: Fault | 'prepared' = { code: 'index.unreachable', reason: 'the store is not prepared yet' };
  const readiness = createReadiness(
    settings.TALLY_ROLES,
    servingChecks({ queueWatch: core.queueWatch, gate, ingest, prepared: () => prepared, others: reindexing.checks }),
  );
  const demand = createWorkerDemand({ clock, targetLagS: settings.TALLY_TARGET_LAG_S });
  const listening = { readiness, metrics: telemetryAdapter, telemetry };
  const health = createHealthListener({ ...listening, address: settings.TALLY_HEALTH_ADDRESS });
  const controlPlane = createControlPlane({ ...listening, clock, control: core.control, version, address: settings.TALLY_HTTP_ADDRESS });

  /** Until the store can be prepared nothing is received and readiness says why; it is tried again for as long as it takes. */
  async function prepare(): Promise<void> {
    for (;;) {
      try {
        await core.store.setup.prepare(stopping.signal);
        prepared = 'prepared';
        return;
      } catch (error) {
        stopping.signal.throwIfAborted();
        prepared = faultOf(error);
        if (prepared.code === 'index.newer' || prepared.code === 'index.damaged')
          throw new StartError(`${prepared.reason}. ${faults[prepared.code].advice}`);
        telemetry.requestFailed('prepare the store', prepared.code, prepared.reason);
        await clock.sleep(INDEX_WATCH_MS, stopping.signal);
      }
    }
  }

  async function watchIndex(signal: AbortSignal): Promise<void> {
    if (!gate.isOpen) return;
    await probeIndex(signal).catch((error: unknown) => gate.trip('index', faultOf(error), probeIndex));
  }

  async function tellReadiness(): Promise<void> {
    const { roles } = readiness.read();
    for (const role of settings.TALLY_ROLES) telemetry.ready(role, roles[role]?.ready === true);
    if (ingest !== undefined) telemetry.workersWanted(demand.update(core.queueWatch.visible, ingest.settledTotal));
  }

  return {
    async start(stops) {
      stops.push(() => core.close());
      stops.push(async () => stopping.abort(new Error('the process stops')));
      await listen(health, 'TALLY_HEALTH_ADDRESS', settings.TALLY_HEALTH_ADDRESS);
      stops.push(() => health.close());
      if (settings.TALLY_ROLES.includes('http')) {
        await listen(controlPlane, 'TALLY_HTTP_ADDRESS', settings.TALLY_HTTP_ADDRESS);
        stops.push(() => controlPlane.close());
      }
      await prepare();
      if (embedded !== undefined) await connectEmbedded(core, embedded);
      repeat({ clock, telemetry }, { name: 'watch the index', intervalMs: INDEX_WATCH_MS, signal: stopping.signal }, watchIndex);
      watchState({ state: core.store.state, clock, telemetry, connect: core.connectBucket }, stopping.signal);
      await core.queueWatch.start(stopping.signal);
      repeat({ clock, telemetry }, { name: 'tell readiness', intervalMs: READINESS_MS, signal: stopping.signal }, tellReadiness);
      await tellReadiness();
      const endBy = (): AbortSignal => AbortSignal.timeout(Math.max(0, settings.TALLY_SHUTDOWN_TIMEOUT_MS - CLOSING_MS));
      reindexing.start(stopping.signal);
      startCalendar({ settings, core, telemetry }, stopping.signal);
      if (ingest === undefined) {
        stops.push(() => reindexing.stop(endBy()));
        return;
      }
      const storing = { name: 'store the last events', intervalMs: LAST_EVENTS_MS, signal: stopping.signal };
      repeat({ clock, telemetry }, storing, () => ingest.storeLastEvents());
      const movedLetters = { name: 'look for letters that SQS moved', intervalMs: MOVED_LETTERS_MS, signal: stopping.signal };
      repeat({ clock, telemetry }, movedLetters, movedLettersOf(core, telemetry));
      ingest.start();
      // side by side: there is one deadline
      stops.push(async () => void (await Promise.all([ingest.stop(endBy()), reindexing.stop(endBy())])));
    },
  };
}

/** An address that cannot be had is a mistake in the settings. */
async function listen(listener: Listener, setting: string, { host, port }: Address): Promise<void> {
  try {
    await listener.listen();
  } catch (error) {
    const reason =
      error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
        ? 'is in use already'
        : `cannot be listened on (${faultOf(error).reason})`;
    throw new StartError(`${setting}: ${host}:${port} ${reason}: set it to another HOST:PORT`);
  }
}

function movedLettersOf({ store, gaps, queues, queueWatch }: Core, telemetry: Telemetry): ReturnType<typeof createMovedLetters> {
  return createMovedLetters({
    browse: createLetterBrowser({ queues, telemetry }),
    state: store.state,
    gaps,
    clock: systemClock,
    deadLetters: () =>
      queueWatch.deadLetterQueueUrl === undefined
        ? undefined
        : { queueUrl: queueWatch.deadLetterQueueUrl, visible: queueWatch.deadLettersVisible },
  });
}

/** Connects the demo bucket and announces what changed while nobody listened. */
async function connectEmbedded(core: Core, embedded: Embedded): Promise<void> {
  await core.connectBucket.connect({ bucket: EMBEDDED_BUCKET }, 'embedded');
  const connected = await listAllRecords(core.store.state, 'bucket', bucketRecordSchema);
  const catchUp = createCatchUp({ index: core.store.objects, storage: embedded.storage, clock: systemClock });
  await catchUp(connected.map(({ bucket }) => bucket));
}
