/** What the tests of the OpenSearch adapter share: a store on a prefix of its own, raw requests, and a proxy that interferes. */
import { randomBytes } from 'node:crypto';
import { createOpenSearchStore, type OpenSearchOptions } from '../../../src/store/opensearch/store.ts';
import { systemClock } from '../../../src/process/clock.ts';
import type { Store } from '../../../src/store/store.ts';
import { opensearchUrl } from './found.ts';
import { listenScripted, type ScriptedRequest } from './scripted.ts';

export type TestStore = ReturnType<typeof openTestStore>;

/** Asks the server itself, with every right. */
export type Ask = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: Readonly<Record<string, unknown>>) => Promise<RawAnswer>;

/** A store on a fresh prefix; nothing is prepared yet. `dispose` removes all of the prefix, through `ask`. */
export function openTestStore(options: Partial<OpenSearchOptions> = {}, ask?: Ask) {
  const prefix = `test${randomBytes(6).toString('hex')}`;
  const url = options.urls?.[0] ?? serverUrl();
  const admin: Ask = ask ?? ((method, path, body) => raw(method, path, body, url));
  const opened: Store[] = [];
  const another = (more: Partial<OpenSearchOptions> = {}): Store => {
    const store = createOpenSearchStore({
      urls: [url],
      prefix,
      shards: 1,
      replicas: 0,
      clock: systemClock,
      // what a test writes for itself may wait behind everything else that a busy machine does
      requestTimeoutMs: 120_000,
      ...options,
      ...more,
    });
    opened.push(store);
    return store;
  };
  return {
    prefix,
    store: another(),
    /** The same installation (prefix) as another process sees it. */
    another,
    refresh: async (): Promise<void> => {
      await admin('POST', `/${prefix}-*/_refresh`);
    },
    dispose: async (): Promise<void> => {
      await Promise.all(opened.map((store) => store.close()));
      // a read-only index cannot be deleted
      await admin('PUT', `/${prefix}-*/_settings?expand_wildcards=all`, { 'index.blocks.read_only': null });
      await admin('DELETE', `/${prefix}-*?expand_wildcards=all`);
    },
  };
}

export function serverUrl(): string {
  const url = opensearchUrl();
  if (url === undefined) throw new Error('this run has no OpenSearch');
  return url;
}

export interface RawAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** A request to the server itself, past the adapter. */
export async function raw(method: string, path: string, body?: unknown, url = serverUrl()): Promise<RawAnswer> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
}

export type ProxiedRequest = ScriptedRequest;

export interface ProxyAnswer {
  readonly status: number;
  readonly body?: string;
  readonly contentType?: string;
}

/** Decides what to answer; `forward` asks the real server. `hang` never answers. */
export type Interference = (
  request: ProxiedRequest,
  forward: () => Promise<ProxyAnswer>,
) => Promise<ProxyAnswer | 'hang'> | ProxyAnswer | 'hang';

export type Proxy = Awaited<ReturnType<typeof startProxy>>;

/** A real HTTP server before the real OpenSearch, for answers that a shared server cannot be made to give. */
export async function startProxy(interfere: Interference) {
  const { asked, ...server } = await listenScripted(async (request) => {
    const answer = await interfere(request, () => forward(request));
    if (answer === 'hang') return undefined;
    const { status, body = '', contentType = 'application/json; charset=UTF-8' } = answer;
    return { status, body, headers: { 'content-type': contentType } };
  });
  return {
    ...server,
    /** What came through, oldest first. */
    requests: asked,
  };
}

async function forward({ method, path, headers, body }: ProxiedRequest): Promise<ProxyAnswer> {
  const answer = await fetch(`${serverUrl()}${path}`, {
    method,
    headers: { 'content-type': headers['content-type'] ?? 'application/json' },
    ...(body !== '' && { body }),
  });
  return { status: answer.status, body: await answer.text() };
}
