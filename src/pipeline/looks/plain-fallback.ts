/** Writes documents without its enrichment if the index refuses the enriched ones, so enrichment never prevents a write. */
import { enrichmentOf, isEnriched, plainDocument } from '../../domain/enrichment.ts';
import type { Fault, FaultCode } from '../../domain/fault.ts';
import type { WriteAnswer, WriteDocument, WriteRequest } from './bulk-writer.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { reportEnriched } from './enricher.ts';

/**
 * The faults of a field that the index does not accept: because of its value, or because the mapping does not contain
 * it. A refused document of an index that has accepted no other for a while looks like a mistake in the index's configuration.
 */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['index.rejected', 'bucket.index-misconfigured']);

/** Wraps the writer: an enriched document that the index refuses because of a field is counted and written without enrichment. */
export function withPlainFallback(write: WriteDocument, telemetry: Telemetry): WriteDocument {
  async function writeEnriched(request: WriteRequest): Promise<WriteAnswer> {
    const answer = await write(request);
    const refusal = refusalOf(answer);
    if (refusal === undefined) return answer;
    reportRefusal(telemetry, request, refusal);
    return write(plain(request));
  }

  return (request) => (isEnriched(request.document) ? writeEnriched(request) : write(request));
}

type WriteDocuments = (writes: readonly WriteRequest[], signal?: AbortSignal) => Promise<readonly WriteAnswer[]>;

/** Wraps a writer of many documents in the same way. The refused ones are written again together. */
export function withPlainFallbacks(writeAll: WriteDocuments, telemetry: Telemetry): WriteDocuments {
  return async function writeAllOrPlain(writes, signal) {
    const answers = [...(await writeAll(writes, signal))];
    const refused = writes.flatMap((request, index) => {
      const refusal = refusalOf(answers[index]);
      return refusal === undefined || !isEnriched(request.document) ? [] : [{ request, index, refusal }];
    });
    if (refused.length === 0) return answers;
    for (const { request, refusal } of refused) reportRefusal(telemetry, request, refusal);
    const again = await writeAll(
      refused.map(({ request }) => plain(request)),
      signal,
    );
    refused.forEach(({ index }, at) => {
      const answer = again[at];
      if (answer !== undefined) answers[index] = answer;
    });
    return answers;
  };
}

/** Why the index refused a field of the document; undefined for any other answer. */
function refusalOf(answer: WriteAnswer | undefined): Fault | undefined {
  return answer?.kind === 'fault' && REFUSALS.has(answer.fault.code) ? answer.fault : undefined;
}

function reportRefusal(telemetry: Telemetry, { document }: WriteRequest, { code, reason }: Fault): void {
  const { bucket, tags } = document;
  reportEnriched(telemetry, { bucket, enrich: 'head', result: code, reason });
  if (tags !== undefined) reportEnriched(telemetry, { bucket, enrich: 'tags', result: code, reason });
}

function plain(request: WriteRequest): WriteRequest {
  const { document, known } = request;
  return { ...request, document: known === undefined ? plainDocument(document) : { ...plainDocument(document), ...enrichmentOf(known) } };
}
