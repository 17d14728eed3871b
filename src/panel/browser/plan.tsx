/** A plan: what an apply would write in AWS, shown before it is applied, and followed until it is. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ConnectionView, PlanView } from '../../registry/contract/connections.ts';
import { NOT_SHOWN_YET, untilApplied } from '../../registry/contract/until-applied.ts';
import { differenceOf } from '../../base/difference.ts';
import { Problem, type RequestTo } from './api.ts';
import { facts } from './facts.ts';
import { Findings, Lines } from './findings.tsx';
import { Act } from './form.tsx';
import { useAnswer } from './load.ts';
import { Details, Shown, Text } from './parts.tsx';
import { go } from './place.ts';
import { countText } from '../../base/texts.ts';

/** What a bucket is to have in AWS, as the operations take it. */
export type PlanRequest = Omit<NonNullable<RequestTo<'GET /v1/buckets/{bucket}/plan'>['query']>, 'wired_by_hand'>;

const partTexts: Readonly<Record<PlanView['changes'][number]['part'], string>> = {
  policy: 'the policy',
  subscription: 'the subscription',
  rule: 'the rule',
  trail: 'the selectors of the trail',
  notification: 'the notification configuration of the bucket',
};

/** Of buckets that need no parts in AWS. */
const EMBEDDED = 'connect.embedded';

/** Follows an apply until everything is applied, or the page is left. */
export function useApply() {
  const [waitingFor, setWaitingFor] = useState<string>();
  const end = useRef(new AbortController());
  useEffect(() => () => end.current.abort(), []);
  async function follow(request: (isFirst: boolean) => Promise<ConnectionView>): Promise<void> {
    const { signal } = end.current;
    try {
      const answer = await untilApplied({
        request: async (isFirst) => {
          signal.throwIfAborted();
          return request(isFirst);
        },
        onWaiting: setWaitingFor,
        sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      });
      signal.throwIfAborted();
      if (answer === undefined) {
        throw new Problem(NOT_SHOWN_YET, 'connect.busy', { advice: 'Apply it again in some minutes: it continues then.' });
      }
    } finally {
      setWaitingFor(undefined);
    }
  }
  const waiting = waitingFor !== undefined && (
    <p role="status" aria-busy="true">
      Waiting for <Text>{waitingFor}</Text>. If you leave this page, another apply continues what was begun.
    </p>
  );
  return { follow, waiting };
}

/** What becomes of a plan. */
export interface Planned {
  readonly apply: string;
  /** Sends a request of an apply of this plan. */
  readonly request: (token: string, isFirst: boolean) => Promise<ConnectionView>;
  /** What can be done without AWS. */
  readonly record: { readonly text: string; readonly act: () => Promise<void> } | undefined;
  /** The address of the plan with another source. */
  readonly hrefWith: (source: PlanView['source']) => string;
  readonly onApplied: () => void;
}

interface PlanProps {
  readonly bucket: string;
  readonly wish: PlanRequest;
  readonly planned: Planned;
  /** What is shown in place of the plan of a bucket that is connected; absent: the plan. */
  readonly connected?: ComponentChildren;
}

/** Shows the plan of a wish, and applies exactly that. */
export function Plan({ bucket, wish, planned, connected }: PlanProps) {
  const loaded = useAnswer('GET /v1/buckets/{bucket}/plan', { params: { bucket }, query: wish });
  const { problem, isLoading, reload } = loaded;
  const { record } = planned;
  const isEmbedded = problem?.code === EMBEDDED;
  // what was read before is no plan of what could not be read again
  const plan = problem === undefined ? loaded.value : undefined;
  if (plan?.connected === true && connected !== undefined) return <>{connected}</>;
  return (
    <section id="plan" aria-labelledby="plan-heading">
      <h2 id="plan-heading">
        What it takes in AWS to connect <Text>{bucket}</Text>
      </h2>
      {isEmbedded ? (
        <p class="quiet">The embedded S3 sends the events of its buckets by itself: there is nothing to connect.</p>
      ) : (
        <Shown loaded={{ ...loaded, value: plan }} busy="Reading AWS…">
          {(shown) => <PlanDocument plan={shown} hrefWith={planned.hrefWith} />}
        </Shown>
      )}
      <div class="actions">
        {plan !== undefined && <Apply plan={plan} planned={planned} isReading={isLoading} />}
        {record !== undefined && (
          <Act act={record.act} look="outline">
            {isEmbedded ? 'Add it' : record.text}
          </Act>
        )}
        <button type="button" class="outline" disabled={isLoading} onClick={reload}>
          Read AWS again
        </button>
      </div>
    </section>
  );
}

interface ApplyProps {
  readonly plan: PlanView;
  readonly planned: Planned;
  readonly isReading: boolean;
}

/** Nothing is applied while something blocks the plan. */
function Apply({ plan: { findings, token }, planned: { apply, request, onApplied }, isReading }: ApplyProps) {
  const { follow, waiting } = useApply();
  if (findings.some(({ blocks }) => blocks)) return null;
  return (
    <>
      {waiting}
      <Act act={() => follow((isFirst) => request(token, isFirst)).then(onApplied)} isDisabled={isReading}>
        {apply}
      </Act>
    </>
  );
}

function PlanDocument({ plan, hrefWith }: { readonly plan: PlanView } & Pick<Planned, 'hrefWith'>) {
  const { source, changes, foreign, findings } = plan;
  const blocking = findings.filter(({ blocks }) => blocks);
  // what the apply heals is among its steps
  const others = findings.filter(({ blocks, remedy }) => !blocks && remedy !== 'plan');
  return (
    <>
      <Details
        of={[
          ['Source', source],
          ['Topic identifier', plan.topic_arn !== undefined && <Text>{plan.topic_arn}</Text>],
          ['Enrichment', plan.enrich],
          ['Region', plan.region],
          ['Account', plan.account],
          ['Account of the bucket', plan.bucket_account !== plan.account && plan.bucket_account],
        ]}
      />
      {blocking.length > 0 && (
        <>
          <h3>Nothing can be applied as it is</h3>
          <Findings findings={blocking} />
          <p class="actions">
            {facts.bucketSources
              // a topic of one's own is typed
              .filter((each) => each !== source && each !== 'topic')
              .map((each) => (
                <button type="button" class="outline" key={each} onClick={() => go(hrefWith(each))}>
                  {`Plan with the source ${each}`}
                </button>
              ))}
          </p>
        </>
      )}
      {changes.length === 0 && blocking.length === 0 && <h3>Nothing to do: AWS is as it must be</h3>}
      {changes.length > 0 && <Steps of={changes} />}
      {foreign.length > 0 && (
        <div class="advice">
          <h3>What is not Tally’s</h3>
          <ul>
            {foreign.map(({ text }) => (
              <li key={text}>
                <Text>{text}</Text>
              </li>
            ))}
          </ul>
          <p>It stays as it is otherwise. If any of it changes before the apply, the apply is refused.</p>
        </div>
      )}
      {others.length > 0 && (
        <>
          <h3>What else was found</h3>
          <Findings findings={others} />
        </>
      )}
    </>
  );
}

function Steps({ of }: { readonly of: PlanView['changes'] }) {
  return (
    <>
      <h3>{countText(of.length, 'step')}, in this order</h3>
      <ol class="steps">
        {of.map(({ part, action, name, before, after }) => (
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
  );
}
