/** The check of the clocks by which gaps are closed and events are settled. */
import { FUTURE_MS } from '../../ordering/constants.ts';
import type { Finding } from './finding.ts';

interface ClockReading {
  /** The time that S3's answer states. */
  readonly s3AtMs: number;
  /** When the request was sent and when its answer had arrived, by the clock of this machine. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

/** Finds that S3's clock differs from that of this machine by more than what ordering takes for the same time. */
export function clockSkew(bucket: string, { s3AtMs, sentAtMs, answeredAtMs }: ClockReading): readonly Finding[] {
  const aheadMs = s3AtMs - answeredAtMs;
  const behindMs = sentAtMs - s3AtMs;
  const differMs = Math.max(aheadMs, behindMs);
  if (differMs <= FUTURE_MS) return [];
  const differs = `${Math.round(differMs / 1_000)} s ${aheadMs > behindMs ? 'ahead of' : 'behind'}`;
  return [
    {
      code: 'connect.clock-skew',
      severity: 'degraded',
      what: `the clock of S3, by which ${bucket} is compared, is ${differs} the clock of the machine that asked`,
      why: 'a gap is closed only by a re-index that began after it by both clocks, so gaps wait as long as they differ. Set the clock that is wrong',
      fix: 'timedatectl status',
      blocks: false,
    },
  ];
}
