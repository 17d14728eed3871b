/**
 * The composition root of `tally serve`: every part is created once and connected here. Parts start in the order in which
 * they are needed, and stop in the reverse order:
 *
 *   serve lock → embedded AWS → health listener → webhook receiver → control plane → store prepared → watches → reindex → ingest
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import packageJson from '../package.json' with { type: 'json' };
import type { Embedded } from './demo/server.ts';
import { RequestError } from './base/request-error.ts';
import { processActor } from './process/process-actor.ts';
import { acquireServeLock } from './store/sqlite/connection.ts';
import { systemClock } from './process/clock.ts';
import { createTelemetry, type TelemetryAdapter } from './process/metrics-and-log.ts';
import { createReindexing, ingestParts } from './serve/roles.ts';
import type { OuterEnvironment, ProxyVariables } from './settings/environment.ts';
import type { Settings } from './settings/settings.ts';
import { awsAddresses, createCore, indexLocation, indexSetting, queuesOf, REGION_DEFAULT, type Core } from './serve/core.ts';
import { createControlPlane } from './registry/control-plane.ts';
import { createHealthListener } from './registry/health-listener.ts';
import { createWebhookListener } from './registry/webhook-listener.ts';
import { urlOf } from './registry/server.ts';
import { bucketRecordSchema } from './records/bucket.ts';
import { faultOf, faults, type Fault } from './base/fault.ts';
import { PROCESS_STORED_MS } from './observing/processes.ts';
import { createHandover, createHandoverPermission } from './indexer/handover.ts';
import { createLetterWatch } from './repair/dead-letters.ts';
import { createIngestRole, type IngestRole } from './indexer/indexer.ts';
import { createReadiness } from './observing/readiness.ts';
import { createEventCounter, type EventCounter } from './indexer/arrivals.ts';
import { repeat } from './process/async.ts';
import { loadPanel } from './serve/built-files.ts';
import type { Lifecycle } from './serve/lifecycle.ts';
import { listenAt, listenAtSocket, type ServedAt, StartError } from './serve/listening.ts';
import { servingChecks, warningOf } from './serve/readiness-checks.ts';
import { listAllRecords } from './store/stored.ts';
import { watchState } from './registry/bucket-watch.ts';
import { createWorkerDemand } from './serve/worker-demand.ts';
import { welcome, reportChoices } from './demo/welcome.ts';
import { createLogins, createSessions } from './identity/logins.ts';
import type { LoginParts } from './registry/login-routes.ts';

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
/** How often the windows of the audit that have ended are stored: uses of API keys, and credentials that failed. */
const AUDIT_WINDOWS_MS = 1_000;
/** The part of the shutdown time that is reserved for closing, after the messages in hand are finished. */
const CLOSING_MS = 1_500;

/**
 * Creates a serving process. `start` resolves when every part runs, and rejects with {@link StartError} or a fault after the parts that
 * had started were stopped; `stop` takes at most TALLY_SHUTDOWN_TIMEOUT_MS. `print` writes the welcome text of the embedded mode.
 */
export function createApp(settings: Settings, environment: OuterEnvironment, print: (text: string) => void): Lifecycle['app'] {
  const stops: (() => Promise<void>)[] = [];

  async function stop(): Promise<void> {
    for (const stopPart of stops.splice(0).reverse()) await stopPart();
  }

  return {
    async start() {
      try {
        const telemetryAdapter = createTelemetry({ level: settings.TALLY_LOG_LEVEL, clock: systemClock });
        takeServeLock(settings, stops);
        const embedded = settings.TALLY_EMBEDDED ? await startEmbeddedAws(settings, environment) : undefined;
        if (embedded !== undefined) stops.push(() => embedded.stop());
        const addresses = await awsAddresses(settings, environment, embedded?.endpoint);
        reportChoices(settings, environment, telemetryAdapter.telemetry);
        const core = await createCore(settings, addresses, queuesOf(settings, embedded), telemetryAdapter.telemetry);
        const served = await startServing(core, { environment, telemetryAdapter, embedded, stops });
        if (embedded !== undefined) print(welcome(settings, { ...served, endpoint: embedded.endpoint, bucket: EMBEDDED_BUCKET }));
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
    const setting = indexSetting(settings);
    throw new StartError(`${setting}: ${index.path} is served by another tally process. Stop that process, or change ${setting}.`);
  }
  stops.push(async () => lock.release());
}

async function startEmbeddedAws(settings: Settings, environment: OuterEnvironment): Promise<Embedded> {
  const { EmbeddedStartError, startEmbedded } = await import('./demo/server.ts');
  try {
    return await startEmbedded({
      ...settings.TALLY_EMBEDDED_ADDRESS,
      dataDir: settings.TALLY_EMBEDDED_DATA,
      region: environment.region ?? REGION_DEFAULT,
      bucket: EMBEDDED_BUCKET,
      clock: systemClock,
    });
  } catch (error) {
    if (error instanceof EmbeddedStartError) throw new StartError(error.message);
    throw error;
  }
}

async function watchIndex({ circuits, probeCluster }: Core, signal: AbortSignal): Promise<void> {
  if (circuits.openOf(['cluster']) !== undefined) return;
  const sentAtMs = systemClock.monotonicMs();
  await probeCluster(signal).catch((error: unknown) => {
    signal.throwIfAborted();
    // this is the probe by which an open circuit is judged as well, so one failure is enough; a push-back only slows down
    const fault = faultOf(error);
    if (fault.code !== 'index.overloaded') circuits.clusterFailed(fault, { isLasting: true, sentAtMs });
  });
}

interface Started {
  readonly environment: OuterEnvironment;
  readonly telemetryAdapter: TelemetryAdapter;
  readonly embedded: Embedded | undefined;
  /** What stops each part, in the order in which they start. */
  readonly stops: (() => Promise<void>)[];
}

/** Creates and starts the other parts of the process, once it has the serve lock and the embedded AWS. */
async function startServing(core: Core, { environment, telemetryAdapter, embedded, stops }: Started): Promise<ServedAt> {
  const { settings, stopping, telemetry } = core;
  const permission = createHandoverPermission(core);
  const handover = createHandover({ ...core, permission });
  const worker = workerName();
  const counter = createEventCounter({ ...core, worker });
  const ingest = settings.TALLY_ROLES.includes('ingest') ? createIngestRole(ingestParts(core, { handover, counter }), stopping) : undefined;
  const reindexing = createReindexing(core, worker, () => ingest?.isBusy() === true);
  core.processes.introduce({ ...core, worker, receiving: ingest?.receiving });
  let prepared: Fault | 'prepared' = { code: 'index.unreachable', reason: 'the index store is not prepared yet' };
  const readiness = createReadiness(
    settings.TALLY_ROLES,
    servingChecks({
      ...core,
      ingest,
      prepared: () => prepared,
      others: [...reindexing.checks, warningOf('messages', core.processes)],
    }),
  );
  const workersWanted = createWorkerDemand({ clock: core.clock, targetLagS: settings.TALLY_TARGET_LAG_S });
  const listening = { readiness, metrics: telemetryAdapter, telemetry };
  const health = createHealthListener({ ...listening, address: settings.TALLY_HEALTH_ADDRESS });
  // the system may choose the port
  let boundUrl = urlOf(settings.TALLY_HTTP_ADDRESS);
  const publicUrl = (): string => settings.TALLY_PUBLIC_URL ?? boundUrl;
  const controlPlane = createControlPlane({
    ...listening,
    operations: core.operations,
    ownAccess: core.operations.ownAccess,
    version,
    address: settings.TALLY_HTTP_ADDRESS,
    identity: await createIdentity(core, environment.proxy, publicUrl),
    publicUrl: settings.TALLY_PUBLIC_URL,
    catalogUrl: settings.TALLY_CATALOG_URL,
    loadPanel,
  });

  async function listenForEvents(): Promise<Pick<ServedAt, 'eventsUrl'>> {
    const { TALLY_EVENTS_ADDRESS: address, TALLY_TRUSTED_PROXIES: trustedProxies } = settings;
    const [queueUrl] = core.bucketQueueUrls;
    if (address === undefined || queueUrl === undefined) return {};
    const receiver = createWebhookListener({ ...core, ...core.keys, address, queueUrl, trustedProxies });
    const eventsUrl = await listenAt(receiver, 'TALLY_EVENTS_ADDRESS', address);
    stops.push(() => receiver.close());
    return { eventsUrl };
  }

  async function listen(): Promise<ServedAt> {
    const healthUrl = await listenAt(health, 'TALLY_HEALTH_ADDRESS', settings.TALLY_HEALTH_ADDRESS);
    stops.push(() => health.close());
    const events = await listenForEvents();
    if (!settings.TALLY_ROLES.includes('http')) return { healthUrl, ...events };
    boundUrl = await listenAt(controlPlane, 'TALLY_HTTP_ADDRESS', settings.TALLY_HTTP_ADDRESS);
    stops.push(() => controlPlane.close());
    return { healthUrl, ...events, controlUrl: boundUrl, ...(await listenAtSocket(controlPlane, settings, telemetry)) };
  }

  async function reportReadiness(): Promise<void> {
    const { roles } = readiness.read();
    for (const role of settings.TALLY_ROLES) telemetry.set('tally_ready', roles[role]?.ready === true ? 1 : 0, { role });
    if (ingest !== undefined && core.queueWatch.fault() === undefined)
      telemetry.set('tally_workers_wanted', workersWanted(core.queueWatch.visible, ingest.settledTotal));
  }

  stops.push(() => core.close());
  // until then no other process knows this one, and it may have no store
  stops.push(async () => {
    if (prepared === 'prepared') await tellEnd(core);
  });
  // after the control plane, which counts uses until it is closed
  stops.push(() => core.keys.flush(AbortSignal.timeout(CLOSING_MS / 2)));
  stops.push(async () => stopping.abort(new Error('the process stops')));
  const servedAt = await listen();
  telemetry.info('listening', { ...servedAt, ...(embedded !== undefined && { embeddedUrl: embedded.endpoint }) });
  await prepareStore(core, (fault) => (prepared = fault));
  prepared = 'prepared';
  if (embedded !== undefined) await connectEmbedded(core);
  const { signal } = stopping;
  repeat(core, { name: 'watch the index', intervalMs: INDEX_WATCH_MS, signal }, () => watchIndex(core, signal));
  repeat(core, { name: 'store the audit of credentials', intervalMs: AUDIT_WINDOWS_MS, signal }, () => core.keys.storeEnded());
  await core.queueWatch.start(signal);
  watchState({ ...core, connect: core.connectBucket }, signal);
  const about = { name: 'store what this process knows about itself', intervalMs: PROCESS_STORED_MS, isAtOnce: true, signal };
  repeat(core, about, () => core.processes.store());
  repeat(core, { name: 'report readiness', intervalMs: READINESS_MS, signal }, reportReadiness);
  await reportReadiness();
  reindexing.start(signal);
  if (ingest !== undefined) {
    startIngestRecords(core, ingest, counter);
    await permission.watch(signal);
    ingest.start();
  }
  const endBy = (): AbortSignal => AbortSignal.timeout(Math.max(0, settings.TALLY_SHUTDOWN_TIMEOUT_MS - CLOSING_MS));
  // both stop at the same time, because they share one deadline
  stops.push(async () => void (await Promise.all([ingest?.stop(endBy()), reindexing.stop(endBy())])));
  return servedAt;
}

/** Prepares the index store, and retries until that succeeds. Until then nothing is received, and readiness reports the reason. */
async function prepareStore({ settings, setup, stopping, telemetry, clock }: Core, failed: (fault: Fault) => void): Promise<void> {
  for (;;) {
    try {
      await setup.prepare(stopping.signal);
      return;
    } catch (error) {
      stopping.signal.throwIfAborted();
      const fault = faultOf(error);
      failed(fault);
      if (fault.code === 'index.other-version' || fault.code === 'index.damaged')
        throw new StartError(`${fault.reason}. ${faults[fault.code].advice.replaceAll('TALLY_INDEX_URL', indexSetting(settings))}`);
      telemetry.requestFailed('prepare the store', error);
      await clock.sleep(INDEX_WATCH_MS, stopping.signal);
    }
  }
}

/** How people log in; undefined without an issuer: then callers are not authenticated. */
async function createIdentity(
  { settings, store, telemetry, keys }: Core,
  proxyEnv: ProxyVariables | undefined,
  publicUrl: () => string,
): Promise<LoginParts | undefined> {
  const { TALLY_OIDC_ISSUER: address, TALLY_OIDC_CLIENT_ID: clientId } = settings;
  if (address === undefined || clientId === undefined || !settings.TALLY_ROLES.includes('http')) return undefined;
  // loaded only where people log in
  const { createIssuer } = await import('./identity/issuer.ts');
  const issuer = createIssuer({
    issuer: address,
    clientId,
    clientSecret: settings.TALLY_OIDC_CLIENT_SECRET,
    scopes: settings.TALLY_OIDC_SCOPES,
    proxyEnv,
    clock: keys.clock,
  });
  const ports = { ...store, telemetry, ...keys };
  const sessions = createSessions({ ...ports, days: settings.TALLY_SESSION_DAYS });
  const logins = createLogins({ ...ports, issuer, sessions, publicUrl });
  return { ...keys, sessions, logins, trustedProxies: settings.TALLY_TRUSTED_PROXIES, publicUrl };
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

/**
 * Connects the demo bucket, and looks for what was lost: the embedded storage sends an event shortly after each change, and if the
 * process is killed in between, the event is lost. The re-index is requested as by a person, so it begins without the wait for more
 * reports.
 */
async function connectEmbedded({ state, operations, gaps, jobs, clock }: Core): Promise<void> {
  const { signal } = new AbortController();
  const reason = 'the embedded storage may have changed while it sent no events';
  const earlier = await listAllRecords(state, 'bucket', bucketRecordSchema);
  for (const { bucket } of earlier) await gaps.report({ bucket, kind: 'loss', reason, seenAtMs: clock.nowMs() }, signal);
  await operations.addBucket({ body: { bucket: EMBEDDED_BUCKET } }, { actor: processActor(), signal });
  for (const { bucket } of await listAllRecords(state, 'bucket', bucketRecordSchema)) {
    await jobs
      .request({ bucket, prefix: '', mode: 'apply', fill: false, now: false }, 'tally serve --embedded', signal)
      .catch((error: unknown) => {
        // one of before the stop goes on
        if (!(error instanceof RequestError) || error.code !== 'job.conflict') throw error;
      });
  }
}

/** A name for this process that no other process has or had. Leases and claims are stored under it. */
function workerName(): string {
  return `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
}
