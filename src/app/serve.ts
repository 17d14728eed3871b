/**
 * The composition root of `tally serve`: every part is created once and connected here. Parts start in the order in which
 * they are needed, and stop in the reverse order:
 *
 *   serve lock → embedded AWS → health listener → control plane → store prepared → watches → reindex → ingest
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import packageJson from '../../package.json' with { type: 'json' };
import type { Embedded } from '../adapters/embedded/server.ts';
import { RequestError } from '../domain/request-error.ts';
import { processActor } from '../adapters/process-actor.ts';
import { isOpenToOthers } from '../adapters/sqlite/file-mode.ts';
import { acquireServeLock } from '../adapters/sqlite/serve-lock.ts';
import { systemClock } from '../adapters/system-clock.ts';
import { createTelemetry, type TelemetryAdapter } from '../adapters/telemetry.ts';
import { createReindexing, ingestParts, startCalendar } from './roles.ts';
import type { OuterEnvironment } from '../settings/proxy.ts';
import type { Settings } from '../settings/settings.ts';
import { awsAddresses, createCore, indexLocation, queuesOf, REGION_DEFAULT, type Core } from './core.ts';
import { createControlPlane } from '../http/control-plane.ts';
import { createHealthListener } from '../http/health-listener.ts';
import { urlOf } from '../http/server.ts';
import { bucketRecordSchema } from '../domain/bucket.ts';
import { faultOf, faults, type Fault } from '../domain/fault.ts';
import { PROCESS_STORED_MS } from '../pipeline/buckets/processes.ts';
import { createHandover, createHandoverPermission } from '../pipeline/gaps/handover.ts';
import { createLetterWatch } from '../pipeline/letters/watch.ts';
import { createIngestRole, type IngestRole } from '../pipeline/ingest/role.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { createReadiness, createUnclaimedJobs, createStoreAccess, type StoreAccess } from '../pipeline/serving/readiness.ts';
import { createEventCounter, type EventCounter } from '../pipeline/serving/event-hours.ts';
import { repeat } from '../pipeline/serving/repeat.ts';
import { loadPanel } from './built-files.ts';
import { listenAt, listenAtSocket, type ServedAt, StartError } from './listening.ts';
import { servingChecks, warningOf } from './readiness-checks.ts';
import { listAllRecords } from '../pipeline/records/stored.ts';
import { watchState } from '../pipeline/buckets/watch.ts';
import { createWorkerDemand } from '../pipeline/serving/worker-demand.ts';
import { welcome, reportChoices } from './welcome.ts';
import { createIdentity } from './identity.ts';

const version = packageJson.version;
const EMBEDDED_BUCKET = 'demo';
/** How often the process checks that its index answers. */
const INDEX_WATCH_MS = 5_000;
/** How often the metrics of readiness and of workers wanted are updated: as often as the queue depths are read. */
const READINESS_MS = 15_000;
/** How often dead letters that SQS moved are looked for, so that their gaps are known within about a minute. */
const LETTER_WATCH_MS = 30_000;
/** How often the times of the last events are stored: often enough to show that the first event of a bucket has arrived. */
const LAST_EVENTS_MS = 10_000;
const EVENT_HOURS_MS = 60_000;
const RIGHTS_MS = 60_000;
/** How often the windows of the audit that have ended are stored: uses of API keys, and credentials that failed. */
const AUDIT_WINDOWS_MS = 1_000;
/** The part of the shutdown time that is reserved for closing, after the messages in hand are finished. */
const CLOSING_MS = 1_500;

export interface App {
  /** Resolves when every part runs. Rejects with {@link StartError} or a fault, after the parts that had started were stopped. */
  start(): Promise<void>;
  /** Stops in reverse order within TALLY_SHUTDOWN_TIMEOUT_MS. */
  stop(): Promise<void>;
}

interface Outside {
  /** Writes the welcome text for users (only in the embedded mode). */
  readonly print: (text: string) => void;
}

/** Creates a serving process. */
export function createApp(settings: Settings, environment: OuterEnvironment, { print }: Outside): App {
  const telemetryAdapter = createTelemetry({
    level: settings.TALLY_LOG_LEVEL,
    clock: systemClock,
  });
  const stops: (() => Promise<void>)[] = [];

  async function stop(): Promise<void> {
    for (const stopPart of stops.splice(0).reverse()) await stopPart();
  }

  return {
    async start() {
      try {
        takeServeLock(settings, stops);
        warnOfOpenIndex(settings, telemetryAdapter.telemetry);
        const embedded = settings.TALLY_EMBEDDED ? await startEmbeddedAws(settings, environment, telemetryAdapter.telemetry) : undefined;
        if (embedded !== undefined) stops.push(() => embedded.stop());
        const serving = await createServing({ settings, environment, telemetryAdapter, embedded });
        const addresses = await serving.start(stops);
        if (embedded !== undefined) print(welcome(settings, { ...addresses, endpoint: embedded.endpoint, bucket: EMBEDDED_BUCKET }));
      } catch (error) {
        await stop();
        throw error;
      }
    },
    stop,
  };
}

/** Takes the lock of a SQLite index. Two serving processes on one file would index twice and delete each other's provisional work. */
function takeServeLock(settings: Settings, stops: (() => Promise<void>)[]): void {
  const index = indexLocation(settings);
  if (index.product !== 'sqlite') return;
  const lock = acquireServeLock(index.path);
  if (lock === 'held') {
    throw new StartError(`TALLY_INDEX_URL: ${index.path} is served by another tally process. Stop that process or use another file.`);
  }
  stops.push(async () => lock.release());
}

/** What this process creates only its owner may read (main.ts). A file that exists keeps its mode, because its owner may have chosen it. */
function warnOfOpenIndex(settings: Settings, telemetry: Telemetry): void {
  const index = indexLocation(settings);
  if (index.product !== 'sqlite' || !isOpenToOthers(index.path)) return;
  telemetry.warn('other users of this machine can read this file', {
    path: index.path,
    advice: `If they should not: chmod 600 ${index.path}`,
  });
}

async function startEmbeddedAws(settings: Settings, environment: OuterEnvironment, log: Telemetry): Promise<Embedded> {
  const { EmbeddedStartError, startEmbedded } = await import('../adapters/embedded/server.ts');
  try {
    return await startEmbedded({
      ...settings.TALLY_EMBEDDED_ADDRESS,
      dataDir: settings.TALLY_EMBEDDED_DATA,
      region: environment.region ?? REGION_DEFAULT,
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
  readonly environment: OuterEnvironment;
  readonly telemetryAdapter: TelemetryAdapter;
  readonly embedded: Embedded | undefined;
}

async function watchIndex({ circuits, probeCluster }: Core, signal: AbortSignal): Promise<void> {
  if (circuits.openOf(['cluster']) !== undefined) return;
  const sentAtMs = systemClock.monotonicMs();
  await probeCluster(signal).catch((error: unknown) => {
    signal.throwIfAborted();
    // this is the trial by which an open circuit is judged as well, so one failure is enough; a push-back only slows down
    const fault = faultOf(error);
    if (fault.code !== 'index.overloaded') circuits.clusterFailed(fault, { isLasting: true, sentAtMs });
  });
}

/** Creates the other parts of the process, once it has the serve lock and the embedded AWS. */
async function createServing({ settings, environment, telemetryAdapter, embedded }: ServingParts): Promise<{
  start(stops: (() => Promise<void>)[]): Promise<ServedAt>;
}> {
  const { telemetry } = telemetryAdapter;
  const clock = systemClock;
  const queues = queuesOf(settings, embedded);
  const addresses = await awsAddresses(settings, environment, embedded?.endpoint);
  reportChoices(settings, environment, telemetry);
  const core = await createCore(settings, addresses, queues, telemetry);
  const { stopping } = core;
  const permission = createHandoverPermission(core);
  const handover = createHandover({ ...core, permission });
  const worker = workerName();
  const counter = createEventCounter({ ...core, worker });
  const ingest = settings.TALLY_ROLES.includes('ingest') ? createIngestRole(ingestParts(core, { handover, counter }), stopping) : undefined;
  const reindexing = createReindexing(core, { worker, liveIsBusy: () => ingest?.isBusy() === true });
  const unclaimed = createUnclaimedJobs(clock);
  core.processes.introduce({ ...core, worker, receiving: ingest?.receiving });
  // a file has no rights in parts
  const isShared = settings.TALLY_ROLES.includes('http') && core.product === 'opensearch';
  const access = isShared ? createStoreAccess(core) : undefined;
  let prepared: Fault | 'prepared' = { code: 'index.unreachable', reason: 'the index store is not prepared yet' };
  const readiness = createReadiness(
    settings.TALLY_ROLES,
    servingChecks({
      ...core,
      ingest,
      prepared: () => prepared,
      others: [...reindexing.checks, warningOf('jobs', unclaimed), warningOf('messages', core.processes), ...(access?.checks ?? [])],
    }),
  );
  const workersWanted = createWorkerDemand({ clock, targetLagS: settings.TALLY_TARGET_LAG_S });
  const listening = { readiness, metrics: telemetryAdapter, telemetry };
  const health = createHealthListener({ ...listening, address: settings.TALLY_HEALTH_ADDRESS });
  // the system may choose the port
  let boundUrl = urlOf(settings.TALLY_HTTP_ADDRESS);
  const publicUrl = (): string => settings.TALLY_PUBLIC_URL ?? boundUrl;
  const identity = await createIdentity({ ...core, proxyEnv: environment.proxy, publicUrl });
  const controlPlane = createControlPlane({
    ...listening,
    operations: core.operations,
    ownAccess: core.operations.ownAccess,
    version,
    address: settings.TALLY_HTTP_ADDRESS,
    identity,
    publicUrl: settings.TALLY_PUBLIC_URL,
    catalogUrl: settings.TALLY_CATALOG_URL,
    loadPanel,
  });

  async function listen(stops: (() => Promise<void>)[]): Promise<ServedAt> {
    const healthUrl = await listenAt(health, 'TALLY_HEALTH_ADDRESS', settings.TALLY_HEALTH_ADDRESS);
    stops.push(() => health.close());
    if (!settings.TALLY_ROLES.includes('http')) return { healthUrl };
    const controlUrl = await listenAt(controlPlane, 'TALLY_HTTP_ADDRESS', settings.TALLY_HTTP_ADDRESS);
    stops.push(() => controlPlane.close());
    boundUrl = controlUrl;
    return { healthUrl, controlUrl, ...(await listenAtSocket(controlPlane, settings, telemetry)) };
  }

  /** Prepares the index store, and retries until that succeeds. Until then nothing is received, and readiness reports the reason. */
  async function prepare(): Promise<void> {
    for (;;) {
      try {
        await core.setup.prepare(stopping.signal);
        prepared = 'prepared';
        return;
      } catch (error) {
        stopping.signal.throwIfAborted();
        prepared = faultOf(error);
        if (prepared.code === 'index.older' || prepared.code === 'index.newer' || prepared.code === 'index.damaged')
          throw new StartError(`${prepared.reason}. ${faults[prepared.code].advice}`);
        telemetry.requestFailed('prepare the store', error);
        await clock.sleep(INDEX_WATCH_MS, stopping.signal);
      }
    }
  }

  async function reportReadiness(): Promise<void> {
    const { roles } = readiness.read();
    for (const role of settings.TALLY_ROLES) telemetry.set('tally_ready', roles[role]?.ready === true ? 1 : 0, { role });
    if (ingest !== undefined && core.queueWatch.fault() === undefined)
      telemetry.set('tally_workers_wanted', workersWanted(core.queueWatch.visible, ingest.settledTotal));
  }

  return {
    async start(stops) {
      stops.push(() => core.close());
      // until then no other process knows this one, and it may have no store
      stops.push(async () => {
        if (prepared === 'prepared') await tellEnd(core);
      });
      // after the control plane, which counts uses until it is closed
      stops.push(() => core.keys.flush(AbortSignal.timeout(CLOSING_MS / 2)));
      stops.push(async () => stopping.abort(new Error('the process stops')));
      const servedAt = await listen(stops);
      telemetry.info('listening', { ...servedAt, ...(embedded !== undefined && { embeddedUrl: embedded.endpoint }) });
      await prepare();
      if (embedded !== undefined) await connectEmbedded(core);
      repeat(core, { name: 'watch the index', intervalMs: INDEX_WATCH_MS, signal: stopping.signal }, (signal) => watchIndex(core, signal));
      const windows = { name: 'store the audit of credentials', intervalMs: AUDIT_WINDOWS_MS, signal: stopping.signal };
      repeat(core, windows, () => core.keys.storeEnded());
      await core.queueWatch.start(stopping.signal);
      startRecords(core, { unclaimed, access });
      repeat(core, { name: 'report readiness', intervalMs: READINESS_MS, signal: stopping.signal }, reportReadiness);
      await reportReadiness();
      const endBy = (): AbortSignal => AbortSignal.timeout(Math.max(0, settings.TALLY_SHUTDOWN_TIMEOUT_MS - CLOSING_MS));
      reindexing.start(stopping.signal);
      startCalendar(core);
      if (ingest === undefined) {
        stops.push(() => reindexing.stop(endBy()));
        return servedAt;
      }
      startIngestRecords(core, ingest, counter);
      await permission.watch(stopping.signal);
      ingest.start();
      // both stop at the same time, because they share one deadline
      stops.push(async () => void (await Promise.all([ingest.stop(endBy()), reindexing.stop(endBy())])));
      return servedAt;
    },
  };
}

/** Says at the stop that this process receives no more. Without a store that answers the others know it a minute later. */
function tellEnd({ processes, telemetry }: Core): Promise<void> {
  return processes.end().catch((error: unknown) => telemetry.requestFailed('store that this process ends', error));
}

/** Stores what the role ingest knows, so that every process says it, and counts the letters that SQS moved. */
function startIngestRecords(core: Core, ingest: IngestRole, counter: EventCounter): void {
  const { signal } = core.stopping;
  repeat(core, { name: 'store the last events', intervalMs: LAST_EVENTS_MS, signal }, () => ingest.storeLastEvents());
  repeat(core, { name: 'store the events of the hour', intervalMs: EVENT_HOURS_MS, signal }, () => counter.store(signal));
  const letters = { name: 'look for letters that SQS moved', intervalMs: LETTER_WATCH_MS, signal };
  const { deadLetters, queueWatch } = core;
  const deadLetterQueues = () => queueWatch.deadLetterQueues();
  repeat(core, letters, createLetterWatch({ ...core, browse: deadLetters.browse, deadLetterQueues }));
}

interface RecordParts {
  readonly unclaimed: ReturnType<typeof createUnclaimedJobs>;
  readonly access: StoreAccess | undefined;
}

/** Watches the stored records. */
function startRecords(core: Core, { access, unclaimed }: RecordParts): void {
  const always = { isAtOnce: true, signal: core.stopping.signal };
  watchState({ ...core, connect: core.connectBucket, unclaimed }, always.signal);
  const stored = { ...always, name: 'store what this process knows about itself', intervalMs: PROCESS_STORED_MS };
  repeat(core, stored, () => core.processes.store());
  if (access !== undefined) repeat(core, { ...always, name: 'look at the rights in the index store', intervalMs: RIGHTS_MS }, access.look);
}

/**
 * Connects the demo bucket, and begins a re-index of every bucket that was connected before; a new one has its first. The
 * embedded storage sends an event shortly after each change; if the process is killed in between, the event is lost.
 */
async function connectEmbedded({ state, operations, jobs, gaps, clock }: Core): Promise<void> {
  const signal = new AbortController().signal;
  const earlier = await listAllRecords(state, 'bucket', bucketRecordSchema);
  await operations.addBucket({ body: { bucket: EMBEDDED_BUCKET } }, { actor: processActor(), signal });
  for (const { bucket } of earlier) {
    try {
      // it does not wait for late events: none comes from before the start
      await jobs.start({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule', now: true }, signal);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      // a job of the bucket that has begun may have passed the keys
      const reason = 'changes of the embedded storage may have been made while their events were not sent';
      await gaps.report({ bucket, kind: 'loss', reason, seenAtMs: clock.nowMs() }, signal);
    }
  }
}

/** A name for this process that no other process has or had. Leases and claims are stored under it. */
function workerName(): string {
  return `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
}
