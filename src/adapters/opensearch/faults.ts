/**
 * Maps OpenSearch's errors to faults. Types and reasons were read from OpenSearch 3.6. Only an error about the document
 * itself is `index.rejected`; an unknown error is retried.
 */
import { z } from 'zod';
import type { Fault, FaultCode } from '../../domain/fault.ts';
import { FaultError } from '../../domain/fault.ts';
import type { OpenSearchAnswer } from './client.ts';

/** The error object of an answer, of a bulk item or of an mget document. */
export const storeErrorSchema = z.object({
  type: z.string(),
  reason: z.string().nullish(),
  caused_by: z.object({ reason: z.string().nullish() }).optional(),
});
export type StoreError = z.infer<typeof storeErrorSchema>;

const errorBodySchema = z.object({ error: storeErrorSchema });

/** Logs and dead letters contain the reason. It is shortened, because a mapping error quotes the document. */
const REASON_LENGTH_MAX = 500;

const codeByType: ReadonlyMap<string, FaultCode> = new Map([
  ['mapper_parsing_exception', 'index.rejected'],
  ['strict_dynamic_mapping_exception', 'bucket.index-outdated'],
  ['index_not_found_exception', 'bucket.index-missing'],
  ['index_closed_exception', 'bucket.index-blocked'],
  ['unavailable_shards_exception', 'bucket.index-unavailable'],
  ['no_shard_available_action_exception', 'bucket.index-unavailable'],
  ['search_phase_execution_exception', 'bucket.index-unavailable'],
  // the cluster's limit of shards: "this action would add [2] total shards, but this cluster currently has …"
  ['validation_exception', 'bucket.index-unavailable'],
  // prevents the creation of indices (a disk is above its high watermark), not writes of documents
  ['index_create_block_exception', 'bucket.index-unavailable'],
  ['security_exception', 'index.denied'],
  ['rejected_execution_exception', 'index.overloaded'],
  ['circuit_breaking_exception', 'index.overloaded'],
] satisfies [string, FaultCode][]);

/** The fault of one item of a bulk request, or of one document of an mget. */
export function itemFault(status: number, error: StoreError): Fault {
  const code = codeOf(status, error) ?? (status >= 500 ? 'bucket.index-unavailable' : 'internal.unexpected');
  return { code, reason: reasonText(status, error) };
}

/** The fault of a whole request. */
export function requestFault(answer: OpenSearchAnswer): FaultError {
  const error = errorOf(answer);
  const code = codeOf(answer.status, error) ?? (isForeign(answer.status, error) ? 'index.unreachable' : 'internal.unexpected');
  return new FaultError(code, reasonText(answer.status, error));
}

/** The fault if it occurs on the state index: a fault of that one index affects all buckets. */
export function stateFault({ code, reason }: Fault): FaultError {
  return new FaultError(stateCodes.get(code) ?? code, reason);
}

const stateCodes: ReadonlyMap<FaultCode, FaultCode> = new Map([
  ['bucket.index-missing', 'index.state-missing'],
  ['bucket.index-outdated', 'index.state-missing'],
  ['bucket.index-blocked', 'index.blocked'],
  ['bucket.index-unavailable', 'index.unreachable'],
  ['index.rejected', 'internal.unexpected'],
] satisfies [FaultCode, FaultCode][]);

/** The error in an answer's body. A body that is not OpenSearch's own (from a proxy or the security plugin) becomes its reason. */
export function errorOf({ status, body }: OpenSearchAnswer): StoreError {
  const parsed = errorBodySchema.safeParse(body);
  if (parsed.success) return parsed.data.error;
  return { type: `http_${status}`, reason: typeof body === 'string' ? body : undefined };
}

/** Whether the index or alias of a request does not exist: the bucket was never connected, or it was removed. */
export function isIndexMissing(answer: OpenSearchAnswer): boolean {
  return answer.status === 404 && errorOf(answer).type === 'index_not_found_exception';
}

/** The body of an answer with status 200. Throws the fault of any other answer. */
export function bodyOf(answer: OpenSearchAnswer): unknown {
  if (answer.status !== 200) throw requestFault(answer);
  return answer.body;
}

/** Parses an answer's body. Throws `index.unreachable`, which is retried, if it has an unexpected shape: it may come from something else than OpenSearch. */
export function parseAnswer<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new FaultError('index.unreachable', `OpenSearch sent an unexpected answer: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}

function codeOf(status: number, error: StoreError): FaultCode | undefined {
  if (error.type === 'cluster_block_exception') return blockCode(status, error.reason ?? '');
  if (error.type === 'illegal_argument_exception') return argumentCode(error.reason ?? '');
  const code = codeByType.get(error.type);
  if (code !== undefined) return code;
  if (status === 401 || status === 403) return 'index.denied';
  return status === 429 ? 'index.overloaded' : undefined;
}

/** Whether the answer may not come from OpenSearch: it is a 5xx or contains no error of OpenSearch. A proxy can send it, or a node that is still starting. */
function isForeign(status: number, error: StoreError): boolean {
  return status >= 500 || error.type === `http_${status}`;
}

/** The code of a block. Reasons end in `blocked by: [FORBIDDEN/8/index write (api)];` with level, number and description of each block. */
function blockCode(status: number, reason: string): FaultCode {
  // 429 is the flood stage, which refuses deletes too and affects every index on that disk sooner or later
  if (reason.includes('/cluster read-only') || status === 429) return 'index.blocked';
  const oneIndex = reason.startsWith('index [');
  if (status === 503) return oneIndex ? 'bucket.index-unavailable' : 'index.unreachable';
  return oneIndex ? 'bucket.index-blocked' : 'index.blocked';
}

/** The code of an illegal argument. Most are about the document, but aliases without a write index and full shards are not. */
function argumentCode(reason: string): FaultCode {
  if (reason.startsWith('Document contains at least one immense term')) return 'index.rejected';
  return /\balias\b|\bwrite index\b|\bnumber of documents\b|\bshards?\b/.test(reason) ? 'bucket.index-unavailable' : 'index.rejected';
}

function reasonText(status: number, { type, reason, caused_by: cause }: StoreError): string {
  return [`${status} ${type}`, reason, cause?.reason].filter(Boolean).join(': ').slice(0, REASON_LENGTH_MAX);
}
