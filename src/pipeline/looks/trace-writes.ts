/** Traces the bulk requests of an object index. */
import { faultOf } from '../../domain/fault.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import { noTracing, type Tracing } from '../ports/tracing.ts';

/** Wraps the index: each write request is traced, with the messages that it serves. Returns the index itself if tracing is off. */
export function traceWrites(objects: ObjectIndex, tracing: Tracing): ObjectIndex {
  if (tracing === noTracing) return objects;
  return {
    ...objects,
    async write(writes, signal) {
      const trace = tracing.bulk(writes);
      try {
        const answers = await objects.write(writes, signal);
        trace.ended(undefined);
        return answers;
      } catch (error) {
        trace.ended(faultOf(error).code);
        throw error;
      }
    },
  };
}
