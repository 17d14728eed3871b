/**
 * Maps OpenSearch's errors to faults. Types and reasons are OpenSearch 3.6's. An error counts as the document's only if it is
 * known to be; any other item error counts as its index's, so that items for other indices continue and an index's
 * configuration dead-letters nothing.
 */
import { z } from 'zod';
import { type Fault, type FaultCode, FaultError } from '../../base/fault.ts';
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

/** What an error can say about one index. */
type IndexTrouble = 'blocked' | 'denied' | 'limit' | 'misconfigured' | 'missing' | 'overloaded' | 'unavailable';
type IndexFault = `bucket.index-${IndexTrouble}`;

/** The fault of the cluster for each fault of an index: what it means if it is the state index, which all buckets need. */
const clusterCodes: Readonly<Record<IndexFault, FaultCode>> = {
  'bucket.index-blocked': 'index.blocked',
  'bucket.index-denied': 'index.denied',
  'bucket.index-limit': 'index.unreachable',
  'bucket.index-misconfigured': 'index.misconfigured',
  'bucket.index-missing': 'index.state-missing',
  'bucket.index-overloaded': 'index.overloaded',
  'bucket.index-unavailable': 'index.unreachable',
};

/** The types whose meaning does not depend on the reason. */
const codeByType: ReadonlyMap<string, IndexFault | 'index.rejected'> = new Map([
  ['mapper_parsing_exception', 'index.rejected'],
  ['document_parsing_exception', 'index.rejected'],
  ['strict_dynamic_mapping_exception', 'bucket.index-misconfigured'],
  ['index_not_found_exception', 'bucket.index-missing'],
  ['index_closed_exception', 'bucket.index-blocked'],
  ['unavailable_shards_exception', 'bucket.index-unavailable'],
  ['no_shard_available_action_exception', 'bucket.index-unavailable'],
  ['search_phase_execution_exception', 'bucket.index-unavailable'],
  // the cluster's limit of shards: "this action would add [2] total shards, but this cluster currently has …"
  ['validation_exception', 'bucket.index-limit'],
  // prevents the creation of indices (a disk is above its high watermark), not writes of documents
  ['index_create_block_exception', 'bucket.index-unavailable'],
  // of a pipeline; other failing processors answer with any type
  ['fail_processor_exception', 'bucket.index-misconfigured'],
  ['security_exception', 'bucket.index-denied'],
  ['rejected_execution_exception', 'bucket.index-overloaded'],
  ['circuit_breaking_exception', 'bucket.index-overloaded'],
] satisfies [string, IndexFault | 'index.rejected'][]);

/** The fault of one item of a bulk request, or of one document of an mget. */
export function itemFault(status: number, error: StoreError): Fault {
  const unknown = status >= 500 ? 'bucket.index-unavailable' : 'bucket.index-misconfigured';
  return { code: codeOf(status, error) ?? unknown, reason: reasonText(status, error) };
}

/**
 * The fault of a whole request. `of`: whether the request concerned one bucket's index alone. Then what OpenSearch refuses
 * or pushes back is a fault of that index, because other requests may be accepted.
 */
export function requestFault(answer: OpenSearchAnswer, of: 'cluster' | 'index' = 'cluster'): FaultError {
  const error = errorOf(answer);
  return new FaultError(requestCode(answer.status, error, of), reasonText(answer.status, error));
}

function requestCode(status: number, error: StoreError, of: 'cluster' | 'index'): FaultCode {
  const code = codeOf(status, error);
  if (code === undefined) return isForeign(status, error) || status >= 500 ? 'index.unreachable' : 'internal.unexpected';
  if (code !== 'bucket.index-denied' && code !== 'bucket.index-overloaded') return code;
  // what a proxy sends does not depend on the index; neither does a refusal of the credentials
  const isAboutIndex = of === 'index' && !isForeign(status, error) && status !== 401;
  return isAboutIndex ? code : clusterCodes[code];
}

/** The fault if it occurs on the state index: a fault of that one index affects all buckets. */
export function stateFault({ code, reason }: Fault): FaultError {
  if (code === 'index.rejected') return new FaultError('internal.unexpected', reason);
  return new FaultError(isIndexFault(code) ? clusterCodes[code] : code, reason);
}

function isIndexFault(code: FaultCode): code is IndexFault {
  return Object.hasOwn(clusterCodes, code);
}

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

/** The body of an answer with status 200. Throws the fault of any other answer (see {@link requestFault} for `of`). */
export function bodyOf(answer: OpenSearchAnswer, of: 'cluster' | 'index' = 'cluster'): unknown {
  if (answer.status !== 200) throw requestFault(answer, of);
  return answer.body;
}

/** The same for a request about the state index, whose fault affects all buckets. */
export function stateBody(answer: OpenSearchAnswer): unknown {
  if (answer.status !== 200) throw stateFault(requestFault(answer));
  return answer.body;
}

/** Parses an answer's body. Throws `index.unreachable`, which is retried, if it has an unexpected shape: it may come from something else than OpenSearch. */
export function parseAnswer<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new FaultError('index.unreachable', `OpenSearch sent an unexpected answer: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
}

/** The code of an error about one index or its document, and of blocks of the whole cluster; undefined for an unknown error. */
function codeOf(status: number, error: StoreError): IndexFault | 'index.rejected' | 'index.blocked' | 'index.unreachable' | undefined {
  if (error.type === 'cluster_block_exception') return blockCode(status, error.reason ?? '');
  if (error.type === 'illegal_argument_exception') return argumentCode(error.reason ?? '');
  // "Pipeline processor configured for non-existent pipeline [name]", with 500
  if (error.type === 'illegal_state_exception' && /\bpipeline\b/i.test(error.reason ?? '')) return 'bucket.index-misconfigured';
  return codeByType.get(error.type) ?? codeOfStatus(status);
}

function codeOfStatus(status: number): IndexFault | undefined {
  if (status === 401 || status === 403) return 'bucket.index-denied';
  return status === 429 ? 'bucket.index-overloaded' : undefined;
}

/** Whether the answer contains no error of OpenSearch: a proxy can send it, or a node that is still starting. */
function isForeign(status: number, error: StoreError): boolean {
  return error.type === `http_${status}`;
}

/** The code of a block. Reasons end in `blocked by: [FORBIDDEN/8/index write (api)];` with level, number and description of each block. */
function blockCode(
  status: number,
  reason: string,
): 'bucket.index-blocked' | 'bucket.index-unavailable' | 'index.blocked' | 'index.unreachable' {
  // a block of the cluster, which an item's reason may begin with its index all the same
  const isOfOneIndex = reason.startsWith('index [') && !reason.includes('/cluster ') && !reason.includes('/no cluster-manager');
  if (status === 503) return isOfOneIndex ? 'bucket.index-unavailable' : 'index.unreachable';
  return isOfOneIndex ? 'bucket.index-blocked' : 'index.blocked';
}

/** Illegal arguments that are about the document, by how their reasons begin. */
const DOCUMENT_ARGUMENTS: readonly string[] = ['Document contains at least one immense term', 'if _id is specified'];

/** The code of an illegal argument. Only a few are about the document; others are about aliases, pipelines, mappings or full shards. */
function argumentCode(reason: string): IndexFault | 'index.rejected' {
  if (DOCUMENT_ARGUMENTS.some((beginning) => reason.startsWith(beginning))) return 'index.rejected';
  return /\bnumber of documents\b|\bshards?\b/.test(reason) ? 'bucket.index-unavailable' : 'bucket.index-misconfigured';
}

function reasonText(status: number, { type, reason, caused_by: cause }: StoreError): string {
  return [`${status} ${type}`, reason, cause?.reason].filter(Boolean).join(': ').slice(0, REASON_LENGTH_MAX);
}
