/** The check of the clocks: ordering compares times of S3 with those of this machine. */
import { FUTURE_MS } from '../../ordering/constants.ts';
import { degraded, type Finding } from './finding.ts';

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
