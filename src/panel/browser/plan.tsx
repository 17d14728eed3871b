/** A plan: what an apply would write in AWS, shown before it is applied, and followed until it is. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ConnectionView, PlanView } from '../../api/connections.ts';
import { NOT_SHOWN_YET, untilApplied } from '../../api/until-applied.ts';
import { differenceOf } from '../../domain/difference.ts';
import { call, Problem, type RequestTo } from './api.ts';
import { facts } from './facts.ts';
import { Findings, Lines } from './findings.tsx';
import { Act } from './form.tsx';
import { useLoaded } from './load.ts';
import { Busy, Details, Failure, Text } from './parts.tsx';
import { countText } from './words.ts';

/** What a bucket is to have in AWS, as the operations take it. */
export type PlanWish = Omit<NonNullable<RequestTo<'GET /v1/buckets/{bucket}/plan'>['query']>, 'wired_by_hand'>;

const partTexts: Readonly<Record<PlanView['changes'][number]['part'], string>> = {
  'topic-policy': 'the policy of the topic',
  'queue-policy': 'the policy of the queue',
  subscription: 'the subscription',
  rule: 'the rule',
  target: 'the target of the rule',
  trail: 'the selectors of the trail',
  notification: 'the notification configuration of the bucket',
};

/** Of buckets that need no parts in AWS. */
const EMBEDDED = 'connect.embedded';

interface ApplyParts {
  readonly request: (isFirst: boolean) => Promise<ConnectionView>;
  readonly onWaiting: (waitingFor: string) => void;
}

/** Resolves once everything is applied. Throws a Problem, or the reason of the signal. */
export async function applyUntilDone({ request, onWaiting }: ApplyParts, signal: AbortSignal): Promise<void> {
  const answer = await untilApplied({
    request: async (isFirst) => {
      signal.throwIfAborted();
      return request(isFirst);
    },
    onWaiting,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  });
  signal.throwIfAborted();
  if (answer === undefined) {
    throw new Problem(NOT_SHOWN_YET, 'connect.busy', {
      advice: 'Apply it again in some minutes: it continues then.',
    });
  }
}

interface PlanStepProps {
  readonly bucket: string;
  readonly wish: PlanWish;
  readonly apply: string;
  /** Sends a request of an apply of this plan. */
  readonly request: (token: string, isFirst: boolean) => Promise<ConnectionView>;
  /** What can be done without AWS. */
  readonly record?: { readonly text: string; readonly act: () => Promise<void> } | undefined;
  /** What is shown in place of the plan of a bucket that is connected. */
  readonly connected?: ComponentChildren;
  /** The same with another source is to be planned. */
  readonly onSource: (source: PlanView['source']) => void;
  readonly onApplied: () => void;
  readonly onClose: () => void;
}

/** Shows the plan of a wish, and applies exactly that. */
export function PlanStep({ bucket, wish, apply, request, record, connected, onSource, onApplied, onClose }: PlanStepProps) {
  const read = (signal: AbortSignal) => call('GET /v1/buckets/{bucket}/plan', { params: { bucket }, query: wish }, signal);
  const { value, problem, isLoading, reload } = useLoaded(`plan ${bucket} ${JSON.stringify(wish)}`, read);
  const [waitingFor, setWaitingFor] = useState<string>();
  const end = useRef(new AbortController());
  useEffect(() => () => end.current.abort(), []);
  // what was read before is no plan of what could not be read again
  const plan = problem === undefined ? value : undefined;
  async function follow(token: string): Promise<void> {
    try {
      await applyUntilDone({ request: (isFirst) => request(token, isFirst), onWaiting: setWaitingFor }, end.current.signal);
      onApplied();
    } finally {
      setWaitingFor(undefined);
    }
  }
  if (plan?.connected === true && connected !== undefined) return <>{connected}</>;
  const isWaiting = waitingFor !== undefined;
  return (
    <>
      {isLoading && <Busy>Reading AWS…</Busy>}
      <NoPlan problem={problem} retry={reload} />
      {plan !== undefined && <PlanDocument plan={plan} onSource={onSource} />}
      <Waiting of={waitingFor} />
      <div class="actions">
        {plan !== undefined && <ApplyButton plan={plan} text={apply} isReading={isLoading} act={follow} />}
        {!isWaiting && <OtherActs record={record} problem={problem} isReading={isLoading} reload={reload} />}
        <button type="button" class="outline" onClick={onClose}>
          {isWaiting ? 'Close' : 'Cancel'}
        </button>
      </div>
    </>
  );
}

interface OtherProps extends Pick<PlanStepProps, 'record'> {
  readonly problem: Problem | undefined;
  readonly isReading: boolean;
  readonly reload: () => void;
}

function OtherActs({ record, problem, isReading, reload }: OtherProps) {
  const isEmbedded = problem?.code === EMBEDDED;
  return (
    <>
      {record !== undefined && (
        <Act act={record.act} look="outline">
          {isEmbedded ? 'Add it' : record.text}
        </Act>
      )}
      {!isEmbedded && (
        <button type="button" class="outline" disabled={isReading} onClick={reload}>
          Read AWS again
        </button>
      )}
    </>
  );
}

function Waiting({ of }: { readonly of: string | undefined }) {
  if (of === undefined) return null;
  return (
    <p role="status" aria-busy="true">
      Waiting for <Text>{of}</Text>. If this is closed, another apply continues what was begun.
    </p>
  );
}

function NoPlan({ problem, retry }: { readonly problem: Problem | undefined; readonly retry: () => void }) {
  if (problem === undefined) return null;
  if (problem.code !== EMBEDDED) return <Failure problem={problem} retry={retry} />;
  return <p class="quiet">The embedded S3 sends the events of its buckets by itself: there is nothing to connect.</p>;
}

interface ApplyProps {
  readonly plan: PlanView;
  readonly text: string;
  readonly isReading: boolean;
  readonly act: (token: string) => Promise<void>;
}

/** Nothing is applied while something blocks the plan. */
function ApplyButton({ plan: { findings, token }, text, isReading, act }: ApplyProps) {
  if (findings.some(({ blocks }) => blocks)) return null;
  return (
    <Act act={() => act(token)} isDisabled={isReading} mayLeave>
      {text}
    </Act>
  );
}

function PlanDocument({ plan, onSource }: { readonly plan: PlanView } & Pick<PlanStepProps, 'onSource'>) {
  const { source, changes, foreign, findings } = plan;
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
          <p class="actions">
            {facts.bucketSources
              // a topic of one's own is typed
              .filter((each) => each !== source && each !== 'topic')
              .map((each) => (
                <button type="button" class="outline" key={each} onClick={() => onSource(each)}>
                  {`Plan with the source ${each}`}
                </button>
              ))}
          </p>
        </section>
      )}
      {changes.length === 0 && blocking.length === 0 && <h3>Nothing to do: AWS is as it must be</h3>}
      {changes.length > 0 && (
        <>
          <h3>{countText(changes.length, 'step')}, in this order</h3>
          <ol class="steps">
            {changes.map(({ part, action, name, before, after }) => (
              <li key={`${part} ${name}`}>
                {action === 'create' ? 'Make' : 'Change'} {partTexts[part]} <Text>{name}</Text>
                <details>
                  <summary>Show the difference</summary>
                  <Lines>{differenceOf(before, after)}</Lines>
                </details>
              </li>
            ))}
          </ol>
        </>
      )}
      {foreign.length > 0 && (
        <section class="advice">
          <h3>What is not Tally’s</h3>
          <ul>
            {foreign.map(({ text }) => (
              <li key={text}>
                <Text>{text}</Text>
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
      ]}
    />
  );
}
