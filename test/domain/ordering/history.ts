/**
 * Random histories of one key in one bucket: what S3 held when, and the messages its source sent about it.
 * Everything is drawn from one seed, so that a wrong history can be played again.
 */
import type { Change, ChangeRecord, Dialect } from '../../../src/domain/events/record.ts';

export interface Random {
  /** In [0, 1). */
  next(): number;
  int(min: number, max: number): number;
  pick<T>(choices: readonly T[]): T;
  chance(probability: number): boolean;
}

/** mulberry32: small, fast, good enough to draw histories. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  return { next, int, pick: (choices) => choices[int(0, choices.length - 1)]!, chance: (probability) => next() < probability };
}

/** The content of a key: an etag, or null when absent. */
export type Content = string | null;

export interface SimMessage {
  readonly record: ChangeRecord;
  readonly sentAtMs: number;
  readonly receivedAtMs: readonly number[];
}

export interface History {
  readonly versioned: boolean;
  readonly changes: readonly { readonly atMs: number; readonly content: Content }[];
  readonly messages: readonly SimMessage[];
  readonly endMs: number;
  /** Messages were dropped: only a reconcile can make the index right. */
  readonly lossy: boolean;
}

export const START_MS = 1_795_000_000_000;
const SECOND = 1_000;
const GAPS = [1, 40, 400, SECOND, 3 * SECOND, 8 * SECOND, 20 * SECOND, 70 * SECOND, 600 * SECOND];
const SENDING = [5, 300, 2 * SECOND, 20 * SECOND, 200 * SECOND];
const RECEIVING = [5, 100, 2 * SECOND, 10 * SECOND, 40 * SECOND, 300 * SECOND, 7_200 * SECOND, 172_800 * SECOND, 1_209_600 * SECOND];

interface Version {
  readonly id: string;
  readonly etag: Content;
}

interface Operation {
  readonly change: Change;
  readonly name: string;
  readonly etag?: string;
  readonly versionId?: string;
  /** A denied call of an audit trail: an event, but no change. */
}

/** Draws a history: 1 to 7 operations in a bucket of a random kind, told by one source, with delays, repeats and losses. */
export function drawHistory(seed: number, { lossy }: { readonly lossy: boolean }): History {
  const random = randomOf(seed);
  const versioned = random.chance(0.5);
  const dialect: Dialect = random.pick(['native', 'native', 'eventbridge', 'trail', 'synthetic']);
  const changes: { atMs: number; content: Content }[] = [{ atMs: 0, content: null }];
  const messages: SimMessage[] = [];
  const versions: Version[] = [];
  let atMs = START_MS;
  let lastSequencerUs = 0;
  /** An emulator's sequencers may only count seconds: ties. */
  const coarse = random.chance(0.15);
  let uploadStartedMs: number | undefined;
  let lastWriteMs = 0;

  const current = (): Content => versions.at(-1)?.etag ?? null;
  for (let index = 0, count = random.int(1, 7); index < count; index += 1) {
    atMs += random.pick(GAPS);
    const etag = `e${index}`;
    const operation = operate();
    if (operation === undefined) continue;
    changes.push({ atMs, content: current() });
    tell(operation);

    function operate(): Operation | undefined {
      const kind = random.pick(['put', 'put', 'put', 'copy', 'delete', 'delete', 'multipart', 'remove-version', 'denied'] as const);
      switch (kind) {
        case 'put':
        case 'copy':
          return store(kind === 'copy' ? 'CopyObject' : 'PutObject', { kind: 'created', copied: kind === 'copy' });
        case 'multipart':
          return multipart();
        case 'delete':
          return remove();
        case 'remove-version':
          return versioned ? removeVersion() : undefined;
        case 'denied':
          return isTrail(dialect) ? { change: { kind: 'deleted' }, name: 'DeleteObject' } : undefined;
      }
    }

    function store(name: string, change: Change): Operation {
      const id = `v${index}`;
      if (!versioned) versions.length = 0;
      versions.push({ id, etag });
      lastWriteMs = atMs;
      return { change, name, etag, ...(versioned && { versionId: id }) };
    }

    /** The upload that started last may win: a completion changes nothing when something was written since its start. */
    function multipart(): Operation | undefined {
      if (uploadStartedMs === undefined) {
        uploadStartedMs = atMs;
        return undefined;
      }
      const overtaken = !versioned && lastWriteMs > uploadStartedMs;
      uploadStartedMs = undefined;
      if (overtaken) return { change: { kind: 'multipart-completed' }, name: 'CompleteMultipartUpload', etag };
      return store('CompleteMultipartUpload', { kind: 'multipart-completed' });
    }

    function remove(): Operation | undefined {
      lastWriteMs = atMs;
      if (versioned) {
        versions.push({ id: `m${index}`, etag: null });
        return { change: { kind: 'marker-created' }, name: 'DeleteObject', versionId: `m${index}` };
      }
      if (versions.length === 0) return undefined;
      versions.length = 0;
      return { change: { kind: 'deleted' }, name: 'DeleteObject' };
    }

    function removeVersion(): Operation | undefined {
      if (versions.length === 0) return undefined;
      const [version] = versions.splice(random.int(0, versions.length - 1), 1);
      return { change: { kind: 'deleted' }, name: 'DeleteObject', versionId: version!.id };
    }
  }

  /** Sequencers rise with the operations of a key, up to 13 s from the truth; event times are theirs within seconds. */
  function tell(operation: Operation): void {
    const preciseUs = Math.max(lastSequencerUs + random.int(1, 5), (atMs + random.int(-13 * SECOND, 13 * SECOND)) * 1_000);
    const sequencerUs = coarse ? Math.floor(preciseUs / 1_000_000) * 1_000_000 : preciseUs;
    lastSequencerUs = preciseUs;
    const trail = isTrail(dialect);
    const eventTimeMs = trail ? Math.floor(atMs / SECOND) * SECOND : atMs + random.int(-SECOND, SECOND);
    const plausible = random.chance(0.93);
    const record: ChangeRecord = {
      dialect,
      bucket: 'b',
      key: 'k',
      keyUncertain: false,
      eventName: operation.name,
      change: operation.change,
      eventTimeMs,
      ...(!trail && { sequencer: plausible ? sequencerText(sequencerUs) : '0055AED6DCD90281E5' }),
      ...(!trail && operation.etag !== undefined && { etag: operation.etag, sizeBytes: 1 }),
      ...(operation.versionId !== undefined && { versionId: operation.versionId }),
    };
    const sentAtMs = atMs + random.pick(SENDING);
    if (lossy && random.chance(0.4)) return;
    const repeats = random.chance(0.3) ? 2 : 1;
    const receivedAtMs = Array.from({ length: repeats }, () => sentAtMs + random.pick(RECEIVING));
    messages.push({ record, sentAtMs, receivedAtMs });
  }

  return { versioned, changes, messages, endMs: atMs, lossy };
}

function isTrail(dialect: Dialect): boolean {
  return dialect === 'trail' || dialect === 'synthetic';
}

/** The sequencer in S3's own form. */
function sequencerText(clockUs: number): string {
  const seconds = Math.floor(clockUs / 1_000_000);
  // the fraction rounded up, so that reading it back gives the same microsecond
  const fraction = Math.min(4_294_967_295, Math.ceil(((clockUs % 1_000_000) * 4_294_967_296) / 1_000_000));
  return `00${seconds.toString(16).toUpperCase().padStart(8, '0')}${fraction.toString(16).toUpperCase().padStart(8, '0')}`;
}
