import { statusOf, type Finding } from '../domain/provisioning/checks/finding.ts';

/** Exit codes. 64, 69 and 78 are EX_USAGE, EX_UNAVAILABLE and EX_CONFIG of sysexits.h; 130 is 128 + SIGINT, as in shells. */
export const exitCodes = {
  ok: 0,
  failure: 1,
  drift: 2,
  cancelled: 3,
  held: 4,
  degraded: 5,
  broken: 6,
  notApplied: 7,
  someFailed: 8,
  usage: 64,
  unavailable: 69,
  config: 78,
  interrupted: 130,
} as const;

/** What each code means, as the documentation lists them. */
export const exitMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'success; `tally drift BUCKET` found no drift',
  failure: 'failure: the request was refused, nothing of the plan can be applied, or the job that you waited for failed',
  drift: '`tally drift BUCKET` found drift',
  cancelled: 'the job that you waited for was cancelled',
  held: 'the job that you waited for is done, but for deletions that it held back and that wait for your decision',
  degraded: '`tally doctor` found a connection that is degraded',
  broken:
    '`tally doctor` found a connection that is broken or not proven, or could not read one; or adding a bucket has made everything, and something such as a stopped trail keeps events from arriving',
  notApplied: 'the bucket is connected, and its parts in AWS are not all made',
  someFailed: 'of several buckets, at least one failed; the table names each with its code',
  usage: 'wrong usage',
  unavailable: 'something that is needed is unavailable; the message has a code and advice',
  config: 'invalid settings; every mistake is listed before anything starts',
  interrupted: 'interrupted (Ctrl-C) while waiting; the job continues',
};

/** The code of the worst finding. What could not be read counts as broken: it is not known to work. */
export function exitCodeOfFindings(findings: readonly Pick<Finding, 'severity'>[]): number {
  switch (statusOf(findings)) {
    case 'ok':
      return exitCodes.ok;
    case 'degraded':
      return exitCodes.degraded;
    case 'broken':
    case 'unknown':
      return exitCodes.broken;
  }
}
