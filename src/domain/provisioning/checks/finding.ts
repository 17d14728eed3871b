/** What a check finds, and how findings are made. */
import { type Facts } from '../facts.ts';
import { QUEUE_STATEMENTS_MAX } from '../policy.ts';

/** The worst first. `broken`: events are lost. `unknown`: it could not be read. `degraded`: events arrive, but not all that could, or not safely. */
export const severities = ['broken', 'unknown', 'degraded'] as const;
export type Severity = (typeof severities)[number];

export interface Finding {
  readonly code: string;
  readonly severity: Severity;
  readonly what: string;
  readonly why: string;
  /** A command or a statement to paste. */
  readonly fix: string;
  /** No apply can heal it. */
  readonly blocks: boolean;
}

export type Check = (facts: Facts) => Finding | undefined;

export const apply = ({ wish }: Facts): string => `tally bucket apply ${wish.bucket}`;

/** Says what an apply heals. */
export function healable(facts: Facts, code: string, what: string, why: string): Finding {
  return { code, severity: 'broken', what, why, fix: apply(facts), blocks: false };
}

export function blocking(code: string, what: string, why: string, fix: string): Finding {
  return { code, severity: 'broken', what, why, fix, blocks: true };
}

/** Says what keeps Tally from making or checking something that may be in order. */
export function unchecked(...finding: Parameters<typeof blocking>): Finding {
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
  return arn.split(':')[2] === 'sns'
    ? `aws sns get-topic-attributes --topic-arn ${arn} --query Attributes.Policy`
    : `aws sqs get-queue-attributes --queue-url "$(aws sqs get-queue-url --queue-name ${arn.split(':').at(-1) ?? ''} --query QueueUrl --output text)" --attribute-names Policy`;
}

export function tooLarge(arn: string, bytes: number): Finding {
  return blocking(
    'connect.policy-size',
    `the policy of ${arn} would be larger than AWS allows (${bytes} bytes, ${QUEUE_STATEMENTS_MAX} statements for a queue)`,
    'Tally needs one statement for each service that sends',
    `remove statements of ${arn} that nothing needs any more`,
  );
}

interface KeyOf {
  readonly arn: string;
  readonly key: string;
  readonly services: readonly string[];
}

/** `services`: those that send to it, and so need its key; no others are to be allowed. */
export function keyFinding(region: string, { arn, key, services }: KeyOf): Finding {
  if (/alias\/aws\/(?:sns|sqs)$/.test(key)) {
    return blocking(
      'connect.kms-managed-key',
      `${arn} is encrypted with ${key}`,
      'the policy of this key cannot be changed, so no service may send: messages are lost without an error',
      'docs/connect.md, “Encryption with your own key”',
    );
  }
  const statement = {
    Effect: 'Allow',
    Principal: { Service: services.length === 1 ? services[0] : services },
    Action: ['kms:GenerateDataKey', 'kms:Decrypt'],
    Resource: '*',
  };
  return {
    code: 'connect.kms-unchecked',
    severity: 'degraded',
    what: `${arn} is encrypted with the key ${key} in ${region}, whose policy Tally does not read`,
    why: 'the services that send must be allowed to use the key, or messages are lost without an error',
    fix: JSON.stringify(statement),
    blocks: false,
  };
}

/** The worst severity of some findings; `ok` if there are none. */
export function statusOf(findings: readonly Pick<Finding, 'severity'>[]): Severity | 'ok' {
  return severities.find((severity) => findings.some((finding) => finding.severity === severity)) ?? 'ok';
}
