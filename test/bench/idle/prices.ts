/**
 * What requests cost on AWS, in US dollars for a million in us-east-1 without any free tier, read in November 2026:
 * https://aws.amazon.com/sqs/pricing/, https://aws.amazon.com/s3/pricing/, https://aws.amazon.com/sns/pricing/
 */
const PRICES: readonly (readonly [operation: RegExp, dollarsPerMillion: number])[] = [
  [/^SQS /, 0.4],
  [/^S3 GET list-type/, 5],
  [/^S3 /, 0.4],
  [/^SNS /, 0.5],
];

const MINUTES_OF_MONTH = 730 * 60;

/** What this many requests a minute cost in a month. Those without a price, such as OpenSearch's, cost nothing. */
export function dollarsOfMonth(operation: string, perMinute: number): number {
  const [, dollarsPerMillion = 0] = PRICES.find(([pattern]) => pattern.test(operation)) ?? [];
  return (perMinute * MINUTES_OF_MONTH * dollarsPerMillion) / 1_000_000;
}
