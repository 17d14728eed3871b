/**
 * What OpenSearch's errors mean, in the words of the fault catalogue. Types and reasons were read from OpenSearch 3.6.
 * Only an error that speaks of the document itself is `index.rejected`; what is not known here stays retryable.
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

/** Reports and dead letters show a reason; a mapping error quotes the document. */
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
  // keeps indices from being created (a disk above its high watermark), not documents from being written
  ['index_create_block_exception', 'bucket.index-unavailable'],
  ['security_exception', 'index.denied'],
  ['rejected_execution_exception', 'index.overloaded'],
  ['circuit_breaking_exception', 'index.overloaded'],
] satisfies [string, FaultCode][]);

/** What one item of a bulk request, or one document of an mget, was refused for. */
export function itemFault(status: number, error: StoreError): Fault {
  const code = codeOf(status, error) ?? (status >= 500 ? 'bucket.index-unavailable' : 'internal.unexpected');
  return { code, reason: reasonText(status, error) };
}

/** What a whole request was refused for. */
export function requestFault(answer: OpenSearchAnswer): FaultError {
  const error = errorOf(answer);
  const code = codeOf(answer.status, error) ?? (noneOfOurs(answer.status, error) ? 'index.unreachable' : 'internal.unexpected');
  return new FaultError(code, reasonText(answer.status, error));
}

/** The same fault, met on the state index: what concerns one index only is there everybody's. */
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

/** The error in an answer's body; of a body that is not OpenSearch's own (a proxy's, the security plugin's) its text. */
export function errorOf({ status, body }: OpenSearchAnswer): StoreError {
  const parsed = errorBodySchema.safeParse(body);
  if (parsed.success) return parsed.data.error;
  return { type: `http_${status}`, reason: typeof body === 'string' ? body : undefined };
}

/** The body of an answer that must be a success. Throws its fault when it is none. */
export function bodyOf(answer: OpenSearchAnswer): unknown {
  if (answer.status !== 200) throw requestFault(answer);
  return answer.body;
}

/** Parses an answer's body; one of another shape is not from an OpenSearch that we know, and may be another one soon. */
export function parseAnswer<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new FaultError('index.unreachable', `unexpected answer: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}

function codeOf(status: number, error: StoreError): FaultCode | undefined {
  if (error.type === 'cluster_block_exception') return blockCode(status, error.reason ?? '');
  if (error.type === 'illegal_argument_exception') return argumentCode(error.reason ?? '');
  const code = codeByType.get(error.type);
  if (code !== undefined) return code;
  if (status === 401 || status === 403) return 'index.denied';
  return status === 429 ? 'index.overloaded' : undefined;
}

/** 5xx, or an answer without an error of OpenSearch's: something in between, or not yet up. */
function noneOfOurs(status: number, error: StoreError): boolean {
  return status >= 500 || error.type === `http_${status}`;
}

/** Reasons end in `blocked by: [FORBIDDEN/8/index write (api)];`, level, number and words of each block. */
function blockCode(status: number, reason: string): FaultCode {
  // 429 is the flood stage: deletes included, and of every index on that disk sooner or later
  if (reason.includes('/cluster read-only') || status === 429) return 'index.blocked';
  const oneIndex = reason.startsWith('index [');
  if (status === 503) return oneIndex ? 'bucket.index-unavailable' : 'index.unreachable';
  return oneIndex ? 'bucket.index-blocked' : 'index.blocked';
}

/** Most of these are about the document; aliases without a write index and full shards are not. */
function argumentCode(reason: string): FaultCode {
  if (reason.startsWith('Document contains at least one immense term')) return 'index.rejected';
  return /\balias\b|\bwrite index\b|\bnumber of documents\b|\bshards?\b/.test(reason) ? 'bucket.index-unavailable' : 'index.rejected';
}

function reasonText(status: number, { type, reason, caused_by: cause }: StoreError): string {
  return [`${status} ${type}`, reason, cause?.reason].filter(Boolean).join(': ').slice(0, REASON_LENGTH_MAX);
}
