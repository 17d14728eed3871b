/** What the findings of the doctor mean. Their texts with names, reasons and commands are made where they are found. */
import { globSync } from 'node:fs';
import { faults } from '../../src/base/fault.ts';
import { requestErrors } from '../../src/base/request-error.ts';
import { ROOT, textOf } from './pages.ts';

const meanings: Readonly<Record<string, string>> = {
  'connect.clock-skew': 'The clock of this process and that of AWS differ. Gaps wait as long as they do: set the clock that is wrong.',
  'connect.letters-not-set-up':
    'What keeps undeliverable messages in the region of the bucket is missing or was altered. `tally setup`, with `--region` for another region than that of the bucket queue, makes it as it must be.',
  'connect.not-enriched':
    'S3 refuses the HEAD or the tags of an object, so documents lack what the enrichment of the bucket asks for. Once S3 answers, a re-index fills it in.',
  'connect.not-made': 'Parts in AWS are not made yet. `tally bucket add NAME --plan` shows them.',
  'connect.not-set-up':
    'What all buckets share is missing or was altered, so no event arrives. `tally setup`, with `--region` for another region than that of the bucket queue, makes it as it must be; where the Terraform module made it, apply that again.',
  'connect.notification':
    "Tally's part in the bucket's notification configuration is gone or was changed, so events are missing. An apply makes it again. If Terraform removed it, see [the guide](../guides/connect.md#if-another-notification-is-in-the-way).",
  'connect.policy':
    'The policy of a queue lacks the statement that admits the topic of `--topic`, or that of the topic the statement by which EventBridge publishes. An apply adds it.',
  'connect.policy-unreadable': 'A policy cannot be read. A write would replace what is not known, so there is none.',
  'connect.probe-lost':
    'What Tally published through its own topic an hour ago has not reached the bucket queue. A Deny in a policy, or the policy of a key, keeps it away.',
  'connect.queue-retention': 'The bucket queue keeps messages for too short a time, so that an outage loses events.',
  'connect.redrive':
    'The bucket queue has no dead-letter queue or one that does not exist, permits too few receives, or is its own dead-letter queue.',
  'connect.rule':
    'The rule of the bucket does not exist, is disabled, or has another pattern, or its target another destination, input transformer, role or dead-letter queue. An apply makes it as it must be.',
  'connect.rule-foreign':
    'The rule with the name of this installation was made by another one. Two installations have one name: set one of them up again with another `TALLY_INSTALLATION`.',
  'connect.rules-near-limit': 'The event bus is nearly full of rules. AWS raises this quota on request.',
  'connect.subscription':
    'The bucket queue is not subscribed to the topic that `--topic` names, the subscription is not confirmed, or its filter, delivery or dead-letter queue was changed. An apply corrects it.',
  'connect.topic-missing': 'The topic that `--topic` names does not exist. It is yours to make.',
  'connect.trail': 'The trail of `TALLY_TRAIL_ARN` does not record the bucket. An apply adds it to the selectors.',
  'connect.trail-missing': 'The trail of `TALLY_TRAIL_ARN` or `TALLY_TRAIL_BUCKET` does not exist.',
  'connect.trail-own-bucket': 'The trail writes its log files into the bucket, and would record its own deliveries without end.',
  'connect.trail-selector':
    "The supplied trail does not record the bucket's data events. Its owner adds the printed selector beside those that it has.",
  'connect.trail-stopped': 'The trail is stopped, so the rule matches nothing.',
  'connect.trail-unchecked':
    'No setting names a trail. Name one in `TALLY_TRAIL_ARN` or `TALLY_TRAIL_BUCKET`, or add the printed selector to a trail, beside those that it has.',
  'connect.trail-unreadable': 'The selectors of the trail cannot be read. A write would replace them, so there is none.',
  'connect.unproven':
    'No event has arrived by the connection since it was changed last, or none of a created object or of a deletion where a person decides what is sent. Put an object and delete it.',
};

/** Each finding of the code with its meaning. Throws if one has none, or if a meaning has no finding. */
export function findings(): readonly (readonly [code: string, meaning: string])[] {
  const sources = globSync('src/**/*.ts', { cwd: ROOT }).map(textOf);
  const named = new Set(sources.flatMap((source) => [...source.matchAll(/'(connect\.[a-z-]+)'/g)].map(([, code = '']) => code)));
  const found = [...named].filter((code) => !(code in faults) && !(code in requestErrors)).toSorted();
  const odd = [...found.filter((code) => !(code in meanings)), ...Object.keys(meanings).filter((code) => !named.has(code))];
  if (odd.length > 0) throw new Error(`docs/findings.ts and the code do not have the same findings: ${odd.join(', ')}`);
  return found.map((code) => [code, meanings[code] ?? '']);
}
