/** What a check finds, and how findings are made. */
import type { Facts } from '../facts.ts';

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

export function broken(code: string, what: string, why: string, fix: string): Finding {
  return { code, severity: 'broken', what, why, fix, blocks: false };
}

export function blocking(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), blocks: true };
}

/** Says what is missing or not safe, which no apply heals and which keeps none from going ahead. */
export function degraded(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), severity: 'degraded' };
}

/** Says what a person should know, although nothing is wrong. */
export function note(...finding: Parameters<typeof broken>): Finding {
  return { ...broken(...finding), severity: 'note' };
}

/** Says what keeps Tally from making or checking something that may be in order. */
export function unchecked(...finding: Parameters<typeof broken>): Finding {
  return { ...blocking(...finding), severity: 'unknown' };
}

/** Events arrive, but what enrichment reads is refused. */
export const NOT_ENRICHED = 'connect.not-enriched';

/** The worst severity of some findings; `ok` if there are none. */
export function statusOf(findings: readonly Pick<Finding, 'severity'>[]): Severity | 'ok' {
  return severities.find((severity) => findings.some((finding) => finding.severity === severity)) ?? 'ok';
}
