/** What the findings of the doctor mean. Their texts with names, reasons and commands are made where they are found. */
import { globSync } from 'node:fs';
import { faults } from '../../src/base/fault.ts';
import { requestErrors } from '../../src/base/request-error.ts';
import { ROOT, textOf } from './pages.ts';

const meanings: Readonly<Record<string, string>> = {
  'connect.clock-skew': "This process's clock and AWS's clock differ. Gaps wait until they agree: fix the clock that is wrong.",
  'connect.earlier-left':
    'What the bucket had in AWS before its source changed could not be removed, usually because the watch may not. `tally bucket add NAME` by a process that may connect removes it.',
  'connect.not-enriched':
    "S3 refuses an object's HEAD or tags, so documents lack what the bucket's enrichment asks for. Once S3 answers, a re-index fills it in.",
  'connect.not-made':
    "A part of the bucket's own is missing or was changed: its entry in the notification configuration, its rule, its subscription, or its place in a policy or a trail. `tally bucket add NAME --plan` shows it, and an apply makes it. If Terraform removed an entry, see [the guide](../guides/connect.md#if-another-notification-is-in-the-way).",
  'connect.not-set-up':
    "Something that all buckets share is missing or was changed, so no events arrive. `tally setup --apply` corrects it, with `--region` if that isn't the bucket queue's region; if the Terraform module created it, apply that again.",
  'connect.probe-lost':
    'A message that Tally published through its own topic an hour ago has not reached the bucket queue. A Deny in a policy, or a KMS key policy, blocks it.',
  'connect.rule-foreign':
    "Another installation created the rule that has this installation's name. Two installations share a name: set one of them up again with a different `TALLY_INSTALLATION`.",
  'connect.rules-near-limit': 'The event bus has almost as many rules as AWS permits. AWS raises this quota on request.',
  'connect.set-up-unsafe':
    "Something that all buckets share differs from what `tally setup` creates, so events that can't be delivered, or that wait for days, would be lost: a dead-letter queue is missing, or the bucket queue keeps messages for less than four days. `tally setup --apply` corrects it, with `--region` if that isn't the bucket queue's region.",
  'connect.subscription':
    "Someone else gave the bucket queue's subscription to the topic of `--topic` a filter or raw delivery, so not every event arrives. The printed command undoes it.",
  'connect.topic-missing': "The topic that `--topic` names doesn't exist. Create it: Tally doesn't.",
  'connect.trail':
    'The trail in `TALLY_TRAIL_ARN` does not exist, is stopped, or writes its log files to this bucket, so that it would endlessly record its own deliveries.',
  'connect.trail-unchecked':
    "The trail isn't one that Tally may change, so Tally doesn't read it. Add the printed selector to its existing ones, or name it in `TALLY_TRAIL_ARN`.",
  'connect.unproven':
    'No event has arrived through the connection since its last change; or, if a person decides what is sent, none for a created or none for a deleted object. Upload an object and delete it.',
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
