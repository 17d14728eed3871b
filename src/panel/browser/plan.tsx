/** A plan: what an apply would write in AWS, shown before it is applied, and followed until it is. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { differenceOf } from '../../domain/difference.ts';
import type { ConnectionView, PlanView } from '../../api/connections.ts';
import { call, problemFrom, type Problem, type RequestTo } from './api.ts';
import { applyUntilDone } from './applying.ts';
import { Findings, Lines } from './findings.tsx';
import { Act } from './form.tsx';
import { useLoaded } from './load.ts';
import { Busy, Details, Failure, Text } from './parts.tsx';
import { countText } from './words.ts';

/** What a bucket is to have in AWS, as the operations take it. */
export type PlanWish = Omit<NonNullable<RequestTo<'GET /v1/buckets/{bucket}/plan'>['query']>, 'wired_by_hand'>;

const partTexts: Readonly<Record<PlanView['changes'][number]['part'], string>> = {
  topic: 'the topic',
  'topic-policy': 'the policy of the topic',
  queue: 'the queue for what cannot be delivered',
  'queue-policy': 'the policy of the queue',
  subscription: 'the subscription',
  rule: 'the rule',
  target: 'the target of the rule',
  trail: 'the selectors of the trail',
  notification: 'the notification configuration of the bucket',
};

/** A wish that may be possible where another one is not. */
interface Alternative {
  readonly text: string;
  readonly wish: PlanWish;
}

/** The same wish with another source: topic and flags belong to the source. */
function otherWay({ enrich, bucket_account: account }: PlanWish, way: PlanWish): PlanWish {
  return { ...(enrich !== undefined && { enrich }), ...(account !== undefined && { bucket_account: account }), ...way };
}

/** The way that the command of a finding names. */
function wayOf(fix: string): PlanWish | undefined {
  const [, topic] = /^tally bucket add \S+ --source topic --topic (\S+)$/.exec(fix) ?? [];
  if (topic !== undefined) return { source: 'topic', topic_arn: topic };
  return /^tally bucket add \S+ --source eventbridge$/.test(fix) ? { source: 'eventbridge' } : undefined;
}

/** What goes around what blocks the plan, with what fits best first. */
function alternativesTo({ source, findings }: PlanView, wish: PlanWish): readonly Alternative[] {
  const blocking = findings.filter(({ blocks }) => blocks);
  const named = blocking.flatMap(({ fix }) => wayOf(fix) ?? []);
  const isOverlap = blocking.some(({ code }) => code === 'connect.overlap');
  const ways: readonly PlanWish[] = [...named, ...(isOverlap ? [{ source: 'eventbridge' } as const, { source: 'routed' } as const] : [])];
  const texts = ways.map((way) => ({ text: `Plan with the source ${way.source ?? source}`, wish: otherWay(wish, way) }));
  return texts.filter(({ text }, index) => texts.findIndex((each) => each.text === text) === index);
}

interface PlanStepProps {
  readonly bucket: string;
  readonly wish: PlanWish;
  /** Sends the first request of an apply of this plan. Default: the request that the others are too. */
  readonly begin?: (token: string, wish: PlanWish) => Promise<ConnectionView>;
  readonly apply: string;
  /** What can be done without AWS. */
  readonly record?: { readonly text: string; readonly act: () => Promise<void> } | undefined;
  /** The plan is that of a bucket that is connected. */
  readonly onConnected?: () => void;
  /** Another wish is to be planned. */
  readonly onWish: (wish: PlanWish) => void;
  /** Something was applied. */
  readonly onApplied: () => void;
  readonly onClose: () => void;
}

/** Shows the plan of a wish, and applies exactly that. */
export function PlanStep(props: PlanStepProps) {
  const { bucket, wish, record, onConnected, onWish, onClose } = props;
  const read = (signal: AbortSignal) => call('GET /v1/buckets/{bucket}/plan', { params: { bucket }, query: wish }, signal);
  const loaded = useLoaded(`plan ${bucket} ${JSON.stringify(wish)}`, read);
  const applying = useApply(props);
  const { problem } = loaded;
  // what was read before is no plan of what could not be read again
  const plan = problem === undefined ? loaded.value : undefined;
  const isConnected = plan?.connected === true;
  useEffect(() => {
    if (isConnected) onConnected?.();
  }, [isConnected]);
  if (applying.applied !== undefined) return <Applied applied={applying.applied} onClose={onClose} />;
  const again = (): void => {
    applying.reset();
    loaded.reload();
  };
  return (
    <>
      {loaded.isLoading && <Busy>Reading AWS…</Busy>}
      {problem !== undefined && <Failure problem={problem} retry={loaded.reload} />}
      {plan !== undefined && <PlanDocument plan={plan} wish={wish} left={applying.left} onWish={onWish} />}
      <ApplyState applying={applying} retry={again} />
      <div class="actions">
        {plan !== undefined && <ApplyButton plan={plan} isReading={loaded.isLoading} applying={applying} text={props.apply} />}
        {!applying.isActing && <RecordButton record={record} />}
        <button type="button" class="secondary outline" onClick={onClose}>
          {applying.isActing ? 'Close' : 'Cancel'}
        </button>
      </div>
    </>
  );
}

/** What the apply waits for, or why it failed. */
function ApplyState({ applying: { waitingFor, problem }, retry }: { readonly applying: Applying; readonly retry: () => void }) {
  return (
    <>
      {waitingFor !== undefined && (
        <p role="status" aria-busy="true">
          Waiting for <Text>{waitingFor}</Text>. What was begun can be continued by another apply if this is closed.
        </p>
      )}
      {problem !== undefined && <Failure problem={problem} retry={retry} />}
    </>
  );
}

function RecordButton({ record }: Pick<PlanStepProps, 'record'>) {
  if (record === undefined) return null;
  return (
    <Act act={record.act} isSecondary>
      {record.text}
    </Act>
  );
}

interface ApplyButtonProps {
  readonly plan: PlanView;
  readonly isReading: boolean;
  readonly applying: Applying;
  readonly text: string;
}

/** Nothing is applied while something blocks the plan. */
function ApplyButton({ plan: { findings, token }, isReading, applying, text }: ApplyButtonProps) {
  if (findings.some(({ blocks }) => blocks)) return null;
  return (
    <button type="button" disabled={applying.isActing || isReading} aria-busy={applying.isActing} onClick={() => applying.start(token)}>
      {text}
    </button>
  );
}

interface Applying {
  readonly isActing: boolean;
  readonly waitingFor: string | undefined;
  /** The steps that are still to be done, while an apply waits; undefined: it has not shown any yet. */
  readonly left: ReadonlySet<string> | undefined;
  readonly problem: Problem | undefined;
  readonly applied: ConnectionView | undefined;
  readonly start: (token: string) => void;
  /** Forgets what failed. */
  readonly reset: () => void;
}

/** Follows an apply while the plan is shown. */
function useApply({ bucket, wish, begin, onApplied }: PlanStepProps): Applying {
  const [state, set] = useState<Omit<Applying, 'start' | 'reset'>>(IDLE);
  const end = useRef(new AbortController());
  useEffect(() => () => end.current.abort(), []);
  async function follow(token: string): Promise<void> {
    set({ ...IDLE, isActing: true });
    const again = () => call('POST /v1/buckets/{bucket}/apply', { params: { bucket }, body: { plan: token, ...wish } });
    const request = (isFirst: boolean) => (isFirst && begin !== undefined ? begin(token, wish) : again());
    async function onWaiting(waitingFor: string): Promise<void> {
      set((before) => ({ ...IDLE, isActing: true, waitingFor, left: before.left }));
      const query = { ...wish };
      // what the registry cannot read now stays as it was shown
      const now = await call('GET /v1/buckets/{bucket}/plan', { params: { bucket }, query }, end.current.signal).catch(() => undefined);
      if (now !== undefined) set((before) => (before.isActing ? { ...before, left: new Set(now.changes.map(stepOf)) } : before));
    }
    try {
      const done = await applyUntilDone({ request, onWaiting: (waitingFor) => void onWaiting(waitingFor) }, end.current.signal);
      set({ ...IDLE, applied: done });
      onApplied();
    } catch (error) {
      if (!end.current.signal.aborted) set({ ...IDLE, problem: problemFrom(error) });
    }
  }
  return { ...state, start: (token) => void follow(token), reset: () => set(IDLE) };
}

const IDLE = { isActing: false, waitingFor: undefined, left: undefined, problem: undefined, applied: undefined } as const;

/** What identifies a step of a plan. */
function stepOf({ part, name }: PlanView['changes'][number]): string {
  return `${part} ${name}`;
}

function Applied({ applied: { source }, onClose }: { readonly applied: ConnectionView; readonly onClose: () => void }) {
  return (
    <>
      <p role="status">
        <span class="state good">applied</span> The events of the bucket come by {source ?? 'its source'}.
      </p>
      <p>S3 needs about five minutes until it sends every event, and a trail up to twenty. A re-index follows by itself then.</p>
      <div class="actions">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </>
  );
}

interface DocumentProps {
  readonly plan: PlanView;
  readonly wish: PlanWish;
  /** The steps that are still to be done, while the plan is applied. */
  readonly left: ReadonlySet<string> | undefined;
  readonly onWish: (wish: PlanWish) => void;
}

function PlanDocument({ plan, wish, left, onWish }: DocumentProps) {
  const { changes, foreign, findings } = plan;
  const blocking = findings.filter(({ blocks }) => blocks);
  // what the apply heals is among its steps
  const others = findings.filter(({ blocks, fix }) => !blocks && !fix.startsWith('tally bucket add '));
  return (
    <>
      <PlanFacts plan={plan} />
      {blocking.length > 0 && (
        <section>
          <h3>Nothing can be applied as it is</h3>
          <Findings findings={blocking} />
          <Alternatives of={alternativesTo(plan, wish)} onWish={onWish} />
        </section>
      )}
      {changes.length === 0 && blocking.length === 0 && <h3>Nothing to do: AWS is as it must be</h3>}
      {changes.length > 0 && (
        <>
          <h3>{countText(changes.length, 'step')}, in this order</h3>
          <ol class="steps">
            {changes.map((change) => (
              <Step key={stepOf(change)} change={change} isDone={left?.has(stepOf(change)) === false} />
            ))}
          </ol>
        </>
      )}
      {foreign.length > 0 && (
        <section class="advice">
          <h3>What is not Tally’s</h3>
          <ul>
            {foreign.map((each) => (
              <li key={each}>
                <Text>{each}</Text>
              </li>
            ))}
          </ul>
          <p>It stays as it is otherwise. If any of it changes before the apply, the apply is refused.</p>
        </section>
      )}
      {others.length > 0 && (
        <section>
          <h3>What else was found</h3>
          <Findings findings={others} />
        </section>
      )}
    </>
  );
}

const ACTIONS = { create: 'Make', change: 'Change', remove: 'Remove' } as const;

function Step({
  change: { part, action, name, before, after },
  isDone,
}: {
  readonly change: PlanView['changes'][number];
  readonly isDone: boolean;
}) {
  return (
    <li>
      {ACTIONS[action]} {partTexts[part]} <Text>{name}</Text> {isDone && <span class="state good">done</span>}
      <details>
        <summary>Show the difference</summary>
        <Lines>{differenceOf(before, after)}</Lines>
      </details>
    </li>
  );
}

function PlanFacts({ plan }: { readonly plan: PlanView }) {
  return (
    <Details
      of={[
        ['Source', plan.source],
        ['Topic identifier', plan.topic_arn !== undefined && <Text>{plan.topic_arn}</Text>],
        ['Enrichment', plan.enrich],
        ['Region', plan.region],
        ['Account', plan.account],
        ['Account of the bucket', plan.bucket_account !== plan.account && plan.bucket_account],
        ['Installation', plan.installation],
        ['Connection', plan.state === 'none' ? 'nothing was made yet' : plan.state],
        ['Plan', plan.token],
      ]}
    />
  );
}

function Alternatives({ of, onWish }: { readonly of: readonly Alternative[]; readonly onWish: (wish: PlanWish) => void }) {
  if (of.length === 0) return null;
  return (
    <p class="actions">
      {of.map(({ text, wish }) => (
        <button type="button" class="outline" key={text} onClick={() => onWish(wish)}>
          {text}
        </button>
      ))}
    </p>
  );
}
