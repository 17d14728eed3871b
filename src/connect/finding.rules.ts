/** Findings, and the finding of what has not arrived. */
import { z } from 'zod';
import { unprovenText } from '../records/bucket-status.ts';
import type { BucketRecord } from '../records/bucket.ts';

/** The worst first. */
export const severities = ['broken', 'unknown', 'degraded'] as const;
export type Severity = (typeof severities)[number];
const findingSeverities = [...severities, 'note'] as const;

/** A finding, as checks make it and as the API shows it. */
export const findingSchema = z
  .object({
    code: z.string().describe('The kind of finding. Its meaning never changes.'),
    severity: z
      .enum(findingSeverities)
      .describe(
        '`broken`: events are lost. `degraded`: something is missing or not secure. `unknown`: it could not be read. `note`: nothing is wrong.',
      ),
    what: z.string().describe('What is wrong, and with what.'),
    why: z.string().describe('Why it matters.'),
    fix: z.string().describe('A command or a statement to paste.'),
    blocks: z.boolean().describe('Whether it keeps Tally from applying the plan.'),
  })
  .readonly()
  .meta({ id: 'Finding', description: 'Something that a connection check found.' });
export type Finding = z.infer<typeof findingSchema>;

export function broken(code: string, what: string, why: string, fix: string): Finding {
  return { code, severity: 'broken', what, why, fix, blocks: false };
}

export function blocking(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), blocks: true };
}

/** For something missing or unsafe that no apply fixes and that prevents none. */
export function degraded(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), severity: 'degraded' };
}

/** For something that a person should know although nothing is wrong. */
export function note(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), severity: 'note' };
}

/** Events arrive, but what enrichment reads is refused. */
export const NOT_ENRICHED = 'connect.not-enriched';

/** The findings' worst severity; `ok` if there are none. */
export function statusOf(findings: readonly Pick<Finding, 'severity'>[]): Severity | 'ok' {
  return severities.find((severity) => findings.some((finding) => finding.severity === severity)) ?? 'ok';
}

/** A finding about the asking machine, not about the bucket. */
export const CLOCK_SKEW = 'connect.clock-skew';

export function differenceText(aheadMs: number): string {
  return `${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}

const UNREADABLE =
  'a Deny in a policy that Tally did not write (of the topic, the queue or the organisation), or a KMS key policy that does not let S3, SNS or EventBridge use the key';

/** For an unproven connection: names what has not arrived, and likely causes. */
export function unprovenFindings(record: BucketRecord, nowMs: number): readonly Finding[] {
  const { bucket, provenAtMs, source, connection } = record;
  if (provenAtMs !== undefined) return [];
  const isTheirs = source === 'topic' || connection?.byHand === true;
  const first = isTheirs
    ? 'that what you wired exists and sends both created and removed objects, without a filter'
    : 'what else is found here';
  const causes = source === 'webhook' ? 'the address and the token at the store, and whether it reaches TALLY_EVENTS_ADDRESS' : UNREADABLE;
  const why = `only an event proves that events arrive. If none does, first check ${first}; other likely causes are ${causes}`;
  const fix = `upload an object to ${bucket} and delete it, then run \`tally explain ${bucket} KEY\``;
  return [{ ...broken('connect.unproven', `${bucket}: ${unprovenText(record, nowMs)}`, why, fix), severity: 'unknown' }];
}
