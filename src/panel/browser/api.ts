/** Calls of the API, typed by its contract. They are addressed relatively, so that they pass through any prefix of a proxy. */
import type { contract } from '../../api/contract.ts';
import type { AnswerOf, AnyRequest, RequestOf } from '../../api/row.ts';
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
  readonly explainedAt?: string;
  readonly advice?: string;
  readonly jobId?: string;
}

/** An answer that is an error, in the words of the registry. */
export class Problem extends Error {
  readonly code: string;
  readonly advice: string | undefined;
  /** The path of the page of the registry that explains the code. */
  readonly explainedAt: string | undefined;
  readonly jobId: string | undefined;

  constructor(detail: string, code: string, more: ProblemMore = {}) {
    super(detail);
    this.name = 'Problem';
    this.code = code;
    this.advice = more.advice;
    this.explainedAt = more.explainedAt;
    this.jobId = more.jobId;
  }
}

/** Calls an operation. Throws a Problem, or the reason of the signal. */
export async function call<K extends Key>(key: K, request: RequestTo<K>, signal?: AbortSignal): Promise<AnswerTo<K>> {
  return answerOf(await send(key, request, signal));
}

/** Readiness is an answer with status 503 too. */
export async function readiness(signal: AbortSignal): Promise<AnswerTo<'GET /readyz'>> {
  const response = await send('GET /readyz', {}, signal);
  const isReport = response.status === 503 && response.headers.get('content-type')?.startsWith('application/json') === true;
  return isReport ? response.json() : answerOf(response);
}

/** Sends a request. Throws a Problem if no answer comes, or the reason of the signal. */
async function send(key: Key, request: AnyRequest, signal?: AbortSignal): Promise<Response> {
  try {
    const response = await fetch(addressOf(key, request), { ...messageOf(key, request), signal: limited(signal) });
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
  return { method, headers: { ...csrf, ...JSON_BODY }, body: JSON.stringify(body) };
}

function limited(signal: AbortSignal | undefined): AbortSignal {
  const limit = AbortSignal.timeout(ANSWER_MAX_MS);
  return signal === undefined ? limit : AbortSignal.any([limit, signal]);
}

const JSON_BODY = { 'content-type': 'application/json' };

/** The address of an operation. Only the path of the contract is in the path: the registry is where this page is, one level up. */
export function addressOf(key: Key, { params, query }: AnyRequest): URL {
  const template = key.slice(key.indexOf('/') + 1);
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(textIn(params, name)));
  const address = new URL(`../${path}`, new URL('.', location.href));
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of [value].flat()) if (each !== undefined && each !== '') address.searchParams.append(name, String(each));
  }
  return address;
}

function textIn(params: unknown, name: string): string {
  const found = Object.entries(params ?? {}).find(([each]) => each === name);
  return String(found?.[1] ?? '');
}

/** The body of an answer. Throws a Problem for an error. */
async function answerOf(response: Response) {
  if (response.ok) return response.status === 204 ? undefined : await response.json();
  if (response.status === 401) sessionEnded.set(true);
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  const document: unknown = await response.json().catch(() => undefined);
  const detail = fieldOf(document, 'detail') ?? `the registry, or a proxy before it, answered with status ${response.status}`;
  const advice = fieldOf(document, 'advice');
  const jobId = fieldOf(document, 'job_id');
  const type = fieldOf(document, 'type');
  return new Problem(detail, fieldOf(document, 'code') ?? `status.${response.status}`, {
    ...(advice !== undefined && { advice }),
    ...(type?.startsWith('https://') === true && { explainedAt: type }),
    ...(jobId !== undefined && { jobId }),
  });
}

function fieldOf(document: unknown, name: string): string | undefined {
  const found = Object.entries(document ?? {}).find(([each]) => each === name);
  return typeof found?.[1] === 'string' ? found[1] : undefined;
}

/** What happened, for people. */
export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(error instanceof Error ? error.message : 'unexpected error', 'page.unexpected');
}
