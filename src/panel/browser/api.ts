/** Calls of the API, typed by its contract. They are addressed relatively, so that they pass through any prefix of a proxy. */
import type { contract } from '../../registry/contract/contract.ts';
import type { AnswerOf, AnyRequest, RequestOf } from '../../registry/contract/row.ts';
import { observed } from './observed.ts';

export type Key = keyof typeof contract;
export type RequestTo<K extends Key> = RequestOf<(typeof contract)[K]>;
export type AnswerTo<K extends Key> = AnswerOf<(typeof contract)[K]>;
/** An operation of the control plane ends within 30 s. */
const ANSWER_MAX_MS = 40_000;

/** Whether the registry could not be reached when it was last asked. */
export const isAway = observed(false);
/** Counts how often the registry answered again after it could not be reached: what is shown is read again then. */
export const returned = observed(0);
/** Whether the last answer about it shows that the person has no session. */
export const sessionEnded = observed(false);

interface ProblemMore {
  /** The page that explains the code. */
  readonly explainedAt?: string | undefined;
  readonly advice?: string | undefined;
  readonly jobId?: string | undefined;
}

/** An answer that is an error, in the words of the registry. */
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

/** A change needs a header that forms of other sites cannot send. */
function messageOf(key: Key, { body }: AnyRequest): RequestInit {
  const method = key.split(' ')[0] ?? 'GET';
  const csrf = method === 'GET' ? {} : { 'x-tally-csrf': '1' };
  if (body === undefined) return { method, headers: csrf };
  return { method, headers: { ...csrf, 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** The address of an operation. Only the path of the contract is in the path: the registry is where this page is, one level up. */
export function addressOf(key: Key, { params, query }: AnyRequest): URL {
  const template = key.slice(key.indexOf('/') + 1);
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(textIn(params, name) ?? ''));
  const address = new URL(`../${path}`, new URL('.', location.href));
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of [value].flat()) if (each !== undefined && each !== '') address.searchParams.append(name, String(each));
  }
  return address;
}

/** The text that a document has by this name. */
function textIn(document: unknown, name: string): string | undefined {
  const found = Object.entries(document ?? {}).find(([each]) => each === name);
  return typeof found?.[1] === 'string' ? found[1] : undefined;
}

/** The body of an answer. Throws a Problem for an error, whose body is of another type: readiness is an answer with the status 503 too. */
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
