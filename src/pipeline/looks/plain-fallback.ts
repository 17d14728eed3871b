/** Writes a document without its enrichment if the index refuses the enriched one, so enrichment never prevents a write. */
import { isEnriched, plainDocument } from '../../domain/enrichment.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { WriteDocument } from './bulk-writer.ts';
import type { WriteAnswer, WriteRequest } from './bulk-request.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/**
 * The faults of a field that the index does not accept: because of its value, or because an older mapping does not contain
 * it. A refused document of an index that has accepted no other for a while looks like a mistake in the index's configuration.
 */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['index.rejected', 'bucket.index-outdated', 'bucket.index-misconfigured']);

/** Wraps the writer: an enriched document that the index refuses because of a field is counted and written without enrichment. */
export function withPlainFallback(write: WriteDocument, telemetry: Pick<Telemetry, 'enriched'>): WriteDocument {
  async function writeEnriched(request: WriteRequest): Promise<WriteAnswer> {
    const answer = await write(request);
    if (answer.kind !== 'fault' || !REFUSALS.has(answer.fault.code)) return answer;
    const { bucket, tags } = request.document;
    const { code, reason } = answer.fault;
    telemetry.enriched({ bucket, enrich: 'head', result: code, reason });
    if (tags !== undefined) telemetry.enriched({ bucket, enrich: 'tags', result: code, reason });
    return write({ ...request, document: plainDocument(request.document) });
  }

  return (request) => (isEnriched(request.document) ? writeEnriched(request) : write(request));
}
