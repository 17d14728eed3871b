/**
 * Looks at keys for resolve and observe hints: one HEAD for all hints of a key that are in hand when it is sent (rule
 * 11), one write at the highest clock they ask for, each hint its own verdict.
 */
import { setImmediate } from 'node:timers/promises';
import type { BucketRecord } from '../../domain/bucket.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import type { Cause, DocumentSource } from '../../domain/documents/document.ts';
import { documentOf } from '../../domain/documents/document.ts';
import type { Fault } from '../../domain/fault.ts';
import { faultOf } from '../../domain/fault.ts';
import type { ObserveHint, ResolveHint } from '../../domain/ordering/hint.ts';
import type { Verdict } from '../../domain/ordering/observation.ts';
import { planObservedWrite } from '../../domain/ordering/observation.ts';
import type { BulkWriter } from './bulk-writer.ts';
import type { Enricher } from './enricher.ts';
import type { HeadQueue } from './head-queue.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage, Observation } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { NO_TRACES, type Traces } from '../ports/tracing.ts';

export interface LookRequest {
  readonly bucket: BucketRecord;
  readonly key: string;
  readonly hint: ResolveHint | ObserveHint;
  readonly cause: Cause;
  readonly source: DocumentSource;
  /** Of the message that waits for it; none where no message does. */
  readonly traces?: Traces;
}

export type LookAnswer =
  /** `objectExpires`: S3 said that a lifecycle rule is going to expire the object. */
  | { readonly kind: 'written' | 'stale'; readonly verdict: Verdict; readonly objectExpires: boolean }
  | { readonly kind: 'tie'; readonly clock: number }
  | { readonly kind: 'expired' }
  | { readonly kind: 'fault'; readonly fault: Fault };

export type Observe = (request: LookRequest) => Promise<LookAnswer>;

interface ObserverDependencies {
  readonly storage: ObjectStorage;
  readonly writer: BulkWriter;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly heads: HeadQueue;
  readonly enricher: Pick<Enricher, 'ofLook'>;
  /** Aborted at the stop's deadline: looks end. */
  readonly stopped: AbortSignal;
}

interface Member {
  readonly request: LookRequest;
  readonly answer: (answer: LookAnswer) => void;
}

/** Creates the observer. */
export function createObserver(dependencies: ObserverDependencies): Observe {
  const { storage, writer, clock, telemetry, heads, enricher, stopped } = dependencies;
  /** Groups whose HEAD is not yet sent: they can still be joined. */
  const joinable = new Map<string, Member[]>();

  function observe(request: LookRequest): Promise<LookAnswer> {
    return new Promise((resolve) => {
      const id = `${request.bucket.bucket}/${request.key}`;
      const member = { request, answer: resolve };
      const group = joinable.get(id);
      if (group !== undefined) {
        group.push(member);
        return;
      }
      const members: Member[] = [member];
      joinable.set(id, members);
      void heads.run(() => look(id, members));
    });
  }

  async function look(id: string, members: readonly Member[]): Promise<void> {
    // a free place starts this at once: let the rest of the batch that it came with join first
    await setImmediate();
    // from here on nobody joins: the HEAD must be sent after every hint it serves was received
    joinable.delete(id);
    heads.tell();
    const first = members[0]?.request;
    if (first === undefined) return;
    // its life is counted from before it was asked for: how long an answer lay unread in a process that stood still, nobody knows
    const expiresAtMs = clock.monotonicMs() + ANSWER_LIFE_MS;
    const seen = await ask(first, tracesOf(members));
    if ('fault' in seen) return tell(members, { kind: 'fault', fault: seen.fault });
    const state = await enricher.ofLook({ bucket: first.bucket, key: first.key, state: seen.state, expiresAtMs });
    // the write goes on without holding a place among the HEADs
    void writeSeen(members, { ...seen, state }, expiresAtMs).catch((error: unknown) =>
      tell(members, { kind: 'fault', fault: faultOf(error) }),
    );
  }

  async function ask({ bucket: { bucket, region }, key }: LookRequest, traces: Traces): Promise<Observation | { readonly fault: Fault }> {
    const startedMs = clock.monotonicMs();
    const sent = (result: Parameters<Telemetry['headSent']>[0]['result']): void =>
      telemetry.headSent({ durationMs: clock.monotonicMs() - startedMs, result });
    try {
      const observation = await storage.observe({ bucket, region, traces }, key, stopped);
      sent(observation.state.present ? 'present' : 'absent');
      return observation;
    } catch (error) {
      const fault = faultOf(error);
      sent(fault.code);
      return { fault };
    }
  }

  async function writeSeen(members: readonly Member[], seen: Observation, expiresAtMs: number): Promise<void> {
    const plan = planObservedWrite(
      members.map((member) => member.request.hint),
      seen.observedAtMs,
    );
    const { bucket, key, cause, source } = (members[plan.leader] ?? members[0])?.request ?? {};
    if (bucket === undefined || key === undefined || cause === undefined || source === undefined) return;
    const facts = { bucket: bucket.bucket, key, state: seen.state, source, cause, stateAtMs: seen.observedAtMs, nowMs: clock.nowMs() };
    const document = documentOf({ ...facts, clock: plan.clock, settled: plan.settled });
    const objectExpires = document.expires_at !== undefined;
    const answer = await writer.write({ document, equalClock: plan.equalClock, expiresAtMs, traces: tracesOf(members) });
    switch (answer.kind) {
      case 'written':
      case 'stale':
        members.forEach((member, index) =>
          member.answer({ kind: answer.kind, verdict: plan.verdicts[index] ?? { final: true }, objectExpires }),
        );
        return;
      case 'tie':
        return tell(members, { kind: 'tie', clock: plan.clock });
      case 'expired':
      case 'fault':
        return tell(members, answer);
    }
  }

  function tell(members: readonly Member[], answer: LookAnswer): void {
    for (const member of members) member.answer(answer);
  }

  return observe;
}

function tracesOf(members: readonly Member[]): Traces {
  return members.flatMap(({ request }) => request.traces ?? NO_TRACES);
}
