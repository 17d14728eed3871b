/** What an entry of the catalogue of faults (fault.ts) says besides its code. */

/**
 * The circuits that a fault may concern (src/pipeline/serving/circuits.ts), outer ones first:
 * - `cluster`: the index store. Nothing is received and messages in hand wait until a probe succeeds.
 * - `index`: the index of one bucket, or the bucket's record. The records of that bucket wait.
 * - `endpoint`: S3 in one region. Looks at its buckets wait; exact events do not need S3.
 * - `bucket`: one bucket in S3. Looks at its objects wait.
 * - `queue`: SQS. Receiving stops by itself, because it fails.
 *
 * Two values name no circuit:
 * - `object`: this one record fails, and its message alone is deferred until its last permitted receive, then dead-lettered.
 * - `never`: it can never succeed. The message is dead-lettered immediately.
 */
export type FaultCircuit = 'cluster' | 'index' | 'endpoint' | 'bucket' | 'queue' | 'object' | 'never';

/**
 * What work in the background does about a fault: re-index jobs, sweeps, and the set-up of the store.
 *
 * - `stop`: a service that all buckets share does not work. A job keeps its place and waits; a sweep leaves the bucket; set-up ends.
 * - `wait`: this bucket, or its index, does not work. Its jobs keep their place and wait; a sweep leaves the bucket; set-up
 *   continues with the other buckets.
 * - `skip`: permission is missing, for one object or for all. A job waits; a sweep continues with the next object.
 * - `retry`: this object or this listing fails. A job tries again, and fails after three attempts without progress; a sweep
 *   continues with the next object.
 * - `fail`: it can never succeed. A job fails.
 */
export type BackgroundAnswer = 'stop' | 'wait' | 'skip' | 'retry' | 'fail';

export interface FaultEntry {
  readonly circuit: FaultCircuit;
  /** One such answer opens the circuit: it cannot be about one request only. Other faults must be repeated. */
  readonly opensAtOnce?: true;
  readonly background: BackgroundAnswer;
  /** What to do about it, for the operator of a daemon as well as for the user of a command; shown with every report. */
  readonly advice: string;
}
