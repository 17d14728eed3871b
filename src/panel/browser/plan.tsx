/** A plan: shows what would be written in AWS, and then follows the writes until all are made. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ConnectionView, PlanView } from '../../registry/contract/connections.ts';
import { NOT_SHOWN_YET, untilApplied } from '../../registry/contract/until-applied.ts';
import { differenceOf } from '../../base/difference.ts';
import { Problem } from './api.ts';
import { Findings, Lines } from './findings.tsx';
import { Details, Text } from './parts.tsx';
import { countText } from '../../base/texts.ts';

const partTexts: Readonly<Record<PlanView['changes'][number]['part'], string>> = {
  policy: 'the policy',
  subscription: 'the subscription',
  rule: 'the rule',
  trail: 'the trail’s selectors',
  notification: 'the bucket’s notification configuration',
};

/** Follows the application of a plan until it is complete or the person leaves the page. */
export function useApply() {
  const [waitingFor, setWaitingFor] = useState<string>();
  const end = useRef(new AbortController());
  useEffect(() => () => end.current.abort(), []);
  async function follow(request: () => Promise<ConnectionView>): Promise<void> {
    const { signal } = end.current;
    try {
      const answer = await untilApplied({
        request: async () => {
          signal.throwIfAborted();
          return request();
        },
        onWaiting: setWaitingFor,
        sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      });
      signal.throwIfAborted();
      if (answer === undefined) {
        throw new Problem(NOT_SHOWN_YET, 'connect.busy', { advice: 'Apply it again in a few minutes: it continues where it stopped.' });
      }
    } finally {
      setWaitingFor(undefined);
    }
  }
  const waiting = waitingFor !== undefined && (
    <p role="status" aria-busy="true">
      Waiting for <Text>{waitingFor}</Text>. If you leave this page, apply again to continue.
    </p>
  );
  return { follow, waiting };
}

export function PlanDocument({ plan }: { readonly plan: PlanView }) {
  const { source, changes, foreign, findings } = plan;
  const blocking = findings.filter(({ blocks }) => blocks);
  const others = findings.filter(({ blocks }) => !blocks);
  return (
    <>
      <Details
        of={[
          ['Source', source],
          ['Topic identifier', plan.topic_arn !== undefined && <Text>{plan.topic_arn}</Text>],
          ['Enrichment', plan.enrich],
          ['Region', plan.region],
          ['Account', plan.account],
          ['The bucket’s account', plan.bucket_account !== plan.account && plan.bucket_account],
        ]}
      />
      {blocking.length > 0 && (
        <>
          <h3>Tally cannot apply this plan</h3>
          <Findings findings={blocking} />
        </>
      )}
      {changes.length === 0 && blocking.length === 0 && <h3>Nothing to do: everything in AWS is in place</h3>}
      {changes.length > 0 && <Steps of={changes} />}
      {foreign.length > 0 && (
        <div class="advice">
          <h3>Resources of other owners</h3>
          <ul>
            {foreign.map(({ text }) => (
              <li key={text}>
                <Text>{text}</Text>
              </li>
            ))}
          </ul>
          <p>Tally changes nothing else there. If any of it changes before you apply, Tally refuses the plan.</p>
        </div>
      )}
      {others.length > 0 && (
        <>
          <h3>Other findings</h3>
          <Findings findings={others} />
        </>
      )}
    </>
  );
}

function Steps({ of }: { readonly of: PlanView['changes'] }) {
  return (
    <>
      <h3>{of.length === 1 ? '1 step' : `${countText(of.length)} steps, in this order`}</h3>
      <ol class="steps">
        {of.map(({ part, action, name, before, after }) => (
          <li key={`${part} ${name}`}>
            {action === 'create' ? 'Create' : 'Change'} {partTexts[part]} <Text>{name}</Text>
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
