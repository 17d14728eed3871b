/** The object index whose bulk requests are traced. Where tracing is off it is the index itself. */
import { faultOf } from '../../domain/fault.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import { noTracing, type Tracing } from '../ports/tracing.ts';

/** Tells tracing of each write request, and for which messages it is sent. */
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
