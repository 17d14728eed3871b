/** The last of enrichment's refusals: the index's own. A document is never lost for what enrichment added to it. */
import { isEnriched, plainDocument } from '../../domain/documents/enrichment.ts';
import type { FaultCode } from '../../domain/fault.ts';
import type { BulkWriter, WriteAnswer, WriteRequest } from './bulk-writer.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** What the index says of a field that it does not take: its value, or its name in an older mapping. */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['index.rejected', 'bucket.index-outdated']);

/** The writer, but an enriched document that the index refuses for what it holds is written plain, and counted. */
export function withPlainFallback(writer: BulkWriter, telemetry: Pick<Telemetry, 'enriched'>): BulkWriter {
  async function writeEnriched(request: WriteRequest): Promise<WriteAnswer> {
    const answer = await writer.write(request);
    if (answer.kind !== 'fault' || !REFUSALS.has(answer.fault.code)) return answer;
    const { bucket, tags } = request.document;
    const { code, reason } = answer.fault;
    telemetry.enriched({ bucket, enrich: 'head', result: code, reason });
    if (tags !== undefined) telemetry.enriched({ bucket, enrich: 'tags', result: code, reason });
    return writer.write({ ...request, document: plainDocument(request.document) });
  }

  return { write: (request) => (isEnriched(request.document) ? writeEnriched(request) : writer.write(request)) };
}
