/**
 * Workers that receive, observe, pause, crash and write at their own pace:
 *
 *   receive ─► bucket record ─► hint ─► exact: write │ observe: join or wait for a HEAD ─► one write ─► a verdict for each
 *      ▲            ▲                                         │
 *      │            └── in hand, after an outage, a tie ◄─────┤
 *      └── hidden, provisional or after a crash ◄─────────────┴─► handed over: acknowledged under an open gap
 */
import { BUCKET_RECORD_AGE_MAX_MS } from '../../../src/ordering/constants.ts';
import { hintOfTie, type ExactHint, type ObserveHint, type ResolveHint } from '../../../src/ordering/hint.ts';
import type { ObservedWrite } from '../../../src/ordering/observation.ts';
import type { SimMessage, Part } from './history.ts';
import type { Gaps, GapWriter } from './gaps.ts';
import type { Stored, World } from './world.ts';

export interface Worker {
  receive(message: SimMessage): void;
  /** An observation that no message waits for, at the stored document's own clock. */
  observeAgain(): void;
}

interface Member {
  readonly hint: ResolveHint | ObserveHint;
  /** Absent: an observation that no message waits for. */
  readonly message: SimMessage | undefined;
  /** Set while the record is decided by a tie and not by itself. */
  readonly tie: ObserveHint | undefined;
}

interface WorkerOptions {
  readonly id: number;
  /** How far its wall clock is ahead of S3's, by which the world's moments are. */
  readonly skewMs: number;
  readonly gaps: Gaps;
  /** Gives a message to any worker. */
  readonly redeliver: (message: SimMessage) => void;
}

const RETENTION_MS = 14 * 86_400_000;
/** How long a record waits before it is handed over. The product waits for ten minutes; earlier is harder. */
const HANDOVER_AFTER_MS = [0, 10_000, 100_000, 600_000];
/** How long HEADs wait for their turn. */
const TURNS = [0, 0, 50, 3_000];
const BURST_TURNS = [0, 50, 1_000, 3_000, 15_000, 60_000];

/** Creates a worker of the world. */
export function createWorker(world: World, { id, skewMs, gaps, redeliver }: WorkerOptions): Worker {
  const { rules, random, history } = world;
  const { mix } = history;
  /** The members of the observation whose HEAD was not sent yet: others can join them. */
  let joinable: Member[] | undefined;
  const gapWriter: GapWriter = gaps.writerOf(skewMs);

  function receive(message: SimMessage): void {
    if (random.chance(0.1)) {
      // a crash: the message comes back after its visibility timeout; half of the crashes come when all is done but the acknowledgement
      comesBack(message, random.integer(1_000, 60_000));
      if (random.chance(0.5)) return;
    }
    attempt(message, undefined);
  }

  /** A message that is hidden for longer than its queue keeps it is lost. No message of the histories needs half of that. */
  function comesBack(message: SimMessage, delayMs: number): void {
    if (delayMs > RETENTION_MS) return;
    world.at(world.nowMs + delayMs, () => redeliver(message));
  }

  function attempt(message: SimMessage, tie: ObserveHint | undefined): void {
    const facts = world.recordOfAge(BUCKET_RECORD_AGE_MAX_MS, id);
    if (facts === undefined) return waitOut('cluster', { message, tie });
    if (message.record.versionId !== undefined && facts.versioning.status === 'never') {
      // a version id proves that versioning was enabled, whatever was read before
      if (world.outEndMs('cluster', id) !== undefined) return waitOut('cluster', { message, tie });
      const versioning = { status: 'enabled', observedAtMs: world.nowMs + skewMs } as const;
      world.storeVersioning(versioning);
      return decide(message, tie, { ...facts, versioning });
    }
    return decide(message, tie, facts);
  }

  function decide(message: SimMessage, tie: ObserveHint | undefined, facts: NonNullable<ReturnType<World['recordOfAge']>>): void {
    const hint =
      tie ??
      rules.hintOf(message.record, facts, {
        // by the clocks of SQS and of this worker
        sentAtMs: message.sentAtMs - history.s3AheadMs,
        nowMs: world.nowMs + skewMs,
      });
    switch (hint.kind) {
      case 'exact':
        if (message.record.change.kind === 'deleted') world.counts.exactDeletes += 1;
        return writeExact(message, hint);
      case 'resolve':
      case 'observe':
        if (hint.kind === 'observe' && message.isMisfit) world.counts.misfits += 1;
        return observe({ hint, message, tie });
      case 'gap':
      case 'ignored':
        return;
    }
  }

  function writeExact(message: SimMessage, hint: ExactHint): void {
    const content = hint.state.present ? (hint.state.etag ?? null) : null;
    const next = { clock: hint.clock, content, settled: true, stateAtMs: message.record.eventTimeMs ?? world.nowMs };
    world.at(world.nowMs + random.integer(0, rules.answerLifeMs), function write() {
      world.send({
        next,
        equalClock: 'refuse',
        worker: id,
        answered: (answer) => {
          if (answer === 'tie' && rules.ties) attempt(message, hintOfTie(hint.clock));
        },
        failed: (outEndMs) => {
          if (!rules.waitsWithoutAnswer) return world.at(outEndMs, write);
          world.counts.heldBack += 1;
          waitOut('index', { message, tie: undefined });
        },
      });
    });
  }

  function observe(member: Member): void {
    if (joinable !== undefined) {
      world.counts.joined += 1;
      return void joinable.push(member);
    }
    const members = [member];
    joinable = members;
    world.at(world.nowMs + random.pick(mix.bursts ? BURST_TURNS : TURNS), () => {
      if (rules.joinsBeforeHead) joinable = undefined;
      head(members);
    });
  }

  /** One HEAD for all who wait, sent now, and the one write that follows it. */
  function head(members: Member[]): void {
    if (world.outEndMs('s3', id) !== undefined) return waitTogether('s3', members);
    const { content, observedAtMs, answeredMs } = world.ask(world.nowMs);
    world.at(answeredMs, () => {
      if (world.outEndMs('s3', id) !== undefined) return waitTogether('s3', members);
      world.at(answeredMs + random.integer(0, rules.answerLifeMs), () => {
        if (joinable === members) joinable = undefined;
        const ending = random.chance(0.05) ? random.pick(['crash', 'expired'] as const) : 'written';
        if (ending === 'written') writeSeen(members, { content, observedAtMs });
        else if (ending === 'crash') crashed(members);
        else for (const { message, tie } of members) if (message !== undefined) attempt(message, tie);
      });
    });
  }

  function writeSeen(members: readonly Member[], seen: { readonly content: Stored['content']; readonly observedAtMs: number }): void {
    const plan = rules.plan(
      members.map(({ hint }) => hint),
      seen.observedAtMs,
    );
    world.send({
      next: { clock: plan.clock, content: seen.content, settled: plan.settled, stateAtMs: seen.observedAtMs },
      equalClock: plan.equalClock,
      worker: id,
      // a crash between the write and the acknowledgements
      answered: (answer) => (random.chance(0.02) ? crashed(members) : end(members, plan, answer)),
      failed: (outEndMs) => {
        if (rules.waitsWithoutAnswer) waitTogether('index', members);
        else world.at(outEndMs, () => writeSeen(members, seen));
      },
    });
  }

  function end(members: readonly Member[], plan: ObservedWrite, answer: 'written' | 'superseded' | 'tie'): void {
    members.forEach(({ hint, message }, index) => {
      if (message === undefined) return;
      if (answer === 'tie') {
        if (rules.ties) attempt(message, hintOfTie(plan.clock, hint.kind === 'observe' ? hint : undefined));
        return;
      }
      const verdict = plan.verdicts[index]!;
      if (verdict.final || (answer === 'superseded' && !rules.refusedProvisionalStays)) return;
      comesBack(message, verdict.dueInS * 1_000 + random.integer(0, 2_000));
    });
  }

  function crashed(members: readonly Member[]): void {
    for (const { message } of members) if (message !== undefined) comesBack(message, random.integer(1_000, 60_000));
  }

  // ── outages ──

  function waitTogether(part: Part, members: readonly Member[]): void {
    world.counts.heldBack += members.length;
    if (joinable === members) joinable = undefined;
    for (const { message, tie } of members) if (message !== undefined) waitOut(part, { message, tie });
  }

  /** In hand, hidden, or handed over; what waits is decided again, without what was decided or answered before. */
  function waitOut(part: Part, { message, tie }: { readonly message: SimMessage; readonly tie: ObserveHint | undefined }): void {
    const endMs = world.outEndMs(part, id) ?? world.nowMs;
    if (mix.handsOver && random.chance(0.8)) {
      return world.at(Math.min(endMs, world.nowMs + random.pick(HANDOVER_AFTER_MS)), () => {
        // no gap can be stored while the state records cannot be
        if (world.outEndMs('cluster', id) !== undefined || world.outEndMs(part, id) === undefined) return attempt(message, tie);
        gapWriter.handOver(message);
      });
    }
    if (random.chance(0.5)) return world.at(endMs + random.pick([0, 0, 5_000, 60_000]), () => attempt(message, tie));
    // a trial of another record may have ended the outage for this one a little earlier or later
    comesBack(message, endMs - world.nowMs + random.integer(0, 300_000));
  }

  return {
    receive,
    observeAgain() {
      if (world.stored?.settled === false) observe({ hint: hintOfTie(world.stored.clock), message: undefined, tie: undefined });
    },
  };
}
