/** What a check finds, and how findings are made. */
import type { Facts } from '../facts.ts';
import { QUEUE_STATEMENTS_MAX } from '../policy.ts';
import type { Wish } from '../wiring.ts';
import { FUTURE_MS } from '../../ordering/constants.ts';

/** The worst first. `broken`: events are lost, or wait. `unknown`: it could not be read. `degraded`: events arrive, but not all that could, or not safely. */
export const severities = ['broken', 'unknown', 'degraded'] as const;
export type Severity = (typeof severities)[number];
/** `note`: nothing is wrong. */
export const findingSeverities = [...severities, 'note'] as const;

export interface Finding {
  readonly code: string;
  readonly severity: (typeof findingSeverities)[number];
  readonly what: string;
  readonly why: string;
  /** A command or a statement to paste. */
  readonly fix: string;
  /** No apply can heal it. */
  readonly blocks: boolean;
}

export type Check = (facts: Facts) => Finding | undefined;

export const apply = ({ wish }: Facts): string => `tally bucket apply ${wish.bucket}`;

export function broken(code: string, what: string, why: string, fix: string): Finding {
  return { code, severity: 'broken', what, why, fix, blocks: false };
}

/** Says what an apply heals. */
export function healable(facts: Facts, code: string, what: string, why: string): Finding {
  return broken(code, what, why, apply(facts));
}

export function blocking(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), blocks: true };
}

/** Says what is missing or not safe, which no apply heals and which keeps none from going ahead. */
export function degraded(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), severity: 'degraded' };
}

/** Says what keeps Tally from making or checking something that may be in order. */
export function unchecked(...finding: Parameters<typeof broken>): Finding {
  return { ...blocking(...finding), severity: 'unknown' };
}

export function unreadable(arn: string): Finding {
  return unchecked(
    'connect.policy-unreadable',
    `the policy of ${arn} cannot be read`,
    'a write replaces the whole policy, and would delete what is not known',
    showPolicy(arn),
  );
}

/** The command that shows the policy of a topic or queue. */
export function showPolicy(arn: string): string {
  const [, , service, region = '', , name = ''] = arn.split(':');
  return service === 'sns'
    ? `aws sns get-topic-attributes --region ${region} --topic-arn ${arn} --query Attributes.Policy`
    : `aws sqs get-queue-attributes --region ${region} --queue-url "$(aws sqs get-queue-url --region ${region} --queue-name ${name} --query QueueUrl --output text)" --attribute-names Policy`;
}

export function tooLarge(arn: string, bytes: number): Finding {
  return blocking(
    'connect.policy-size',
    `the policy of ${arn} would be larger than AWS allows (${bytes} bytes, ${QUEUE_STATEMENTS_MAX} statements for a queue)`,
    'Tally needs one statement for each service that sends',
    `remove statements of ${arn} that nothing needs any more`,
  );
}

/** The worst severity of some findings; `ok` if there are none. */
export function statusOf(findings: readonly Pick<Finding, 'severity'>[]): Severity | 'ok' {
  return severities.find((severity) => findings.some((finding) => finding.severity === severity)) ?? 'ok';
}

/** Events arrive, but what enrichment reads is refused. */
export const NOT_ENRICHED = 'connect.not-enriched';

/** It is about the machine that asked, not about the bucket. */
export const CLOCK_SKEW = 'connect.clock-skew';

interface ClockReading {
  /** The time that S3's answer states. */
  readonly s3AtMs: number;
  /** When the request was sent and when its answer had arrived, by the clock of this machine. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

export function differenceText(aheadMs: number): string {
  return `${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}

/** Finds that S3's clock differs from that of this machine by more than what ordering takes for the same time. */
export function clockSkew(bucket: string, { s3AtMs, sentAtMs, answeredAtMs }: ClockReading): readonly Finding[] {
  const aheadMs = s3AtMs - answeredAtMs;
  const behindMs = sentAtMs - s3AtMs;
  const differMs = Math.max(aheadMs, behindMs);
  if (differMs <= FUTURE_MS) return [];
  const differs = differenceText(aheadMs > behindMs ? differMs : -differMs);
  return [
    degraded(
      CLOCK_SKEW,
      `the clock of S3, by which ${bucket} is compared, is ${differs} the clock of the machine that asked`,
      'a gap is closed only by a re-index that began after it by both clocks, so gaps wait as long as they differ. Set the clock that is wrong',
      'timedatectl status',
    ),
  ];
}

/** What a person has wired is not known to work yet. */
export const BY_HAND = 'connect.by-hand';

/** Whether what a person has wired works is known once an event arrives by it. */
export function byHandFindings({ bucket, source }: Pick<Wish, 'bucket' | 'source'>, isProven: boolean): readonly Finding[] {
  if (isProven) return [];
  return [
    {
      code: BY_HAND,
      severity: 'unknown',
      what: `${bucket} was wired by hand for the source ${source}, and no event has arrived by it since`,
      why: 'Tally does not judge what a person has made: the first event that arrives by this source shows that it works',
      fix: `put an object into ${bucket}, and ask for it: \`tally explain ${bucket} KEY\``,
      blocks: false,
    },
  ];
}
