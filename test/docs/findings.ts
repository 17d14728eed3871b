/** What the findings of the doctor mean. Their texts with names, reasons and commands are made where they are found. */
import { globSync } from 'node:fs';
import { faults } from '../../src/base/fault.ts';
import { requestErrors } from '../../src/base/request-error.ts';
import { ROOT, textOf } from './pages.ts';

const meanings: Readonly<Record<string, string>> = {
  'connect.clock-skew':
    "The clocks of this machine, SQS and S3 differ. Tally uses SQS's time, and gaps wait until S3's agrees: correct the clock that is wrong.",
  'connect.earlier-left':
    "Tally could not remove the parts of the bucket's earlier source from AWS, usually because this process lacks the permission. `tally bucket add NAME` through a process that may connect buckets removes them.",
  'connect.not-enriched':
    "S3 refuses an object's HEAD or tags, so documents lack what the bucket's enrichment asks for. Once S3 answers, a re-index fills it in.",
  'connect.not-made':
    "One of the bucket's own parts is missing or was changed: its entry in the notification configuration, its rule, its subscription, or its place in a policy or a trail. `tally bucket add NAME --plan` shows it, and `tally bucket add NAME` creates it. If Terraform removed an entry, see [the guide](../guides/connect.md#if-another-notification-is-in-the-way).",
  'connect.not-set-up':
    "Something that all buckets share is missing or was changed, so no events arrive. `tally setup --apply` corrects it, with `--region` if that isn't the bucket queue's region; if the Terraform module created it, apply that again.",
  'connect.probe-lost':
    "A message that Tally published through its own topic an hour ago has not reached the bucket queue. A Deny in a policy, or a KMS key's policy, blocks it.",
  'connect.rule-foreign':
    'Two installations share a name, and the other one created the rule. Set one of them up again with a different `TALLY_INSTALLATION`.',
  'connect.rules-near-limit': 'The event bus has almost as many rules as AWS permits. Ask AWS to raise this quota.',
  'connect.set-up-unsafe':
    "Something that all buckets share differs from what `tally setup` creates, so AWS would lose events that it can't deliver or that wait for days: a dead-letter queue is missing, or the bucket queue keeps messages for less than four days. `tally setup --apply` corrects it, with `--region` if that isn't the bucket queue's region.",
  'connect.subscription':
    "Someone else gave the bucket queue's subscription to the topic of `--topic` a filter or raw delivery, so not every event arrives. The printed command undoes it.",
  'connect.topic-missing': "The topic that `--topic` names doesn't exist. Tally doesn't create it, so create it yourself.",
  'connect.trail':
    'The trail in `TALLY_TRAIL_ARN` does not exist, is stopped, or writes its log files to this bucket, where it would endlessly record its own deliveries.',
  'connect.trail-unchecked':
    "Tally may not change the trail, so it doesn't read it either. Add the printed selector to the trail's existing ones, or name the trail in `TALLY_TRAIL_ARN`.",
  'connect.unproven':
    'No event has arrived through the connection since its last change. If a person decides what is sent, a created and a deleted object must both have produced an event. Upload an object and delete it.',
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
