/** API calls, typed by the contract. Their addresses are relative, so that they work behind any path prefix of a proxy. */
import type { contract } from '../../registry/contract/contract.ts';
import type { AnswerOf, AnyRequest, RequestOf } from '../../registry/contract/row.ts';
import { observed } from './observed.ts';

export type Key = keyof typeof contract;
export type RequestTo<K extends Key> = RequestOf<(typeof contract)[K]>;
export type AnswerTo<K extends Key> = AnswerOf<(typeof contract)[K]>;
/** An operation of the control plane ends within 30 s. */
const ANSWER_MAX_MS = 40_000;

/** Whether the last request could not reach the registry. */
export const isAway = observed(false);
/** Counts the times that the registry became reachable again. Each time, everything shown is read again. */
export const returned = observed(0);
/** Whether the last answer showed that the person has no session. */
export const sessionEnded = observed(false);

interface ProblemMore {
  /** The page that explains the code. */
  readonly explainedAt?: string | undefined;
  readonly advice?: string | undefined;
  readonly jobId?: string | undefined;
}

/** An error answer, in the registry's words. */
export class Problem extends Error {
  readonly code: string;
  readonly more: ProblemMore;

  constructor(detail: string, code: string, more: ProblemMore = {}) {
    super(detail);
    this.name = 'Problem';
    this.code = code;
    this.more = more;
  }
}

/** Calls an operation. Throws a Problem, or the reason of the signal. */
export async function call<K extends Key>(key: K, request: RequestTo<K>, signal?: AbortSignal): Promise<AnswerTo<K>> {
  return answerOf(await send(key, request, signal));
}

/** Sends a request. Throws a Problem if no answer comes, or the reason of the signal. */
async function send(key: Key, request: AnyRequest, signal?: AbortSignal): Promise<Response> {
  const limit = AbortSignal.timeout(ANSWER_MAX_MS);
  try {
    const response = await fetch(addressOf(key, request), {
      ...messageOf(key, request),
      signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
    });
    const wasAway = isAway.read();
    isAway.set(false);
    if (wasAway) returned.set(returned.read() + 1);
    return response;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    isAway.set(true);
    throw new Problem('the registry cannot be reached', 'registry.unreachable');
  }
}

/** Changes need a header that other sites' forms cannot send. */
function messageOf(key: Key, { body }: AnyRequest): RequestInit {
  const method = key.split(' ')[0] ?? 'GET';
  const csrf = method === 'GET' ? {} : { 'x-tally-csrf': '1' };
  if (body === undefined) return { method, headers: csrf };
  return { method, headers: { ...csrf, 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** An operation's address, relative to this page: the registry is one level up. */
export function addressOf(key: Key, { params, query }: AnyRequest): URL {
  const template = key.slice(key.indexOf('/') + 1);
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(textIn(params, name) ?? ''));
  const address = new URL(`../${path}`, new URL('.', location.href));
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of [value].flat()) if (each !== undefined && each !== '') address.searchParams.append(name, String(each));
  }
  return address;
}

/** The document's text field of this name. */
function textIn(document: unknown, name: string): string | undefined {
  const found = Object.entries(document ?? {}).find(([each]) => each === name);
  return typeof found?.[1] === 'string' ? found[1] : undefined;
}

/** The answer's body. Throws a Problem if its type is that of an error. The status doesn't tell: readiness answers 503 too. */
async function answerOf(response: Response) {
  if (response.status === 204) return undefined;
  if (response.headers.get('content-type')?.startsWith('application/json') === true) return response.json();
  if (response.status === 401) sessionEnded.set(true);
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  const document: unknown = await response.json().catch(() => undefined);
  const detail = textIn(document, 'detail') ?? `the registry, or a proxy before it, answered with status ${response.status}`;
  const type = textIn(document, 'type');
  return new Problem(detail, textIn(document, 'code') ?? `status.${response.status}`, {
    advice: textIn(document, 'advice'),
    explainedAt: type?.startsWith('https://') === true ? type : undefined,
    jobId: textIn(document, 'job_id'),
  });
}

/** What happened, for people. */
export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(error instanceof Error ? error.message : 'unexpected error', 'page.unexpected');
}
