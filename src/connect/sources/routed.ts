/**
 * The source `routed`: the bucket's rule, with an input transformer, sends what an audit trail records to a topic. A rule matches only
 * what a trail records, so the bucket must be in one of the trail's selectors.
 */
import { defined } from '../../base/defined.ts';
import { canonicalJson } from '../policy.rules.ts';
import type { ConnectionSpec } from '../../records/bucket.ts';
import { blocking, broken, note, type Finding } from '../finding.rules.ts';
import { topicArnOf } from '../names.rules.ts';
import type { Change, InputTransformer, Kept, ObservedTrail } from '../plan.rules.ts';
import {
  foreignSelectors,
  printedSelectors,
  recordsBucket,
  routedOperations,
  selectorsInput,
  withoutSelector,
  withSelector,
  type Selectors,
} from '../trail.rules.ts';
import { ruleOf } from './eventbridge.ts';
import { existing, through, type Check, type Desired, type Look, type Remains } from './look.ts';

/**
 * The input transformer. Its placeholders have no quotes, so that EventBridge quotes the values and keys with quotes or backslashes
 * survive. A missing value arrives as an empty string. It also passes on the fields that identify failed calls and bulk deletes.
 */
export const transformer: InputTransformer = {
  InputPathsMap: {
    awsRegion: '$.detail.awsRegion',
    eventName: '$.detail.eventName',
    eventTime: '$.detail.eventTime',
    eventID: '$.detail.eventID',
    eventSource: '$.detail.eventSource',
    errorCode: '$.detail.errorCode',
    requestID: '$.detail.requestID',
    bucket: '$.detail.requestParameters.bucketName',
    key: '$.detail.requestParameters.key',
    requestedVersionId: '$.detail.requestParameters.versionId',
    versionId: '$.detail.responseElements.x-amz-version-id',
    isDeleteMarker: '$.detail.responseElements.x-amz-delete-marker',
  },
  InputTemplate:
    '{"Records":[{"awsRegion":<awsRegion>,"eventName":<eventName>,"eventTime":<eventTime>,"eventID":<eventID>,"eventSource":<eventSource>,"errorCode":<errorCode>,"requestID":<requestID>,"requestParameters":{"versionId":<requestedVersionId>},"s3":{"bucket":{"name":<bucket>},"object":{"eTag":"","isDeleteMarker":<isDeleteMarker>,"key":<key>,"versionId":<versionId>}}}]}',
};

export function desiredRouted(spec: ConnectionSpec): Desired {
  const { topicArn: Arn = topicArnOf(spec.installation, spec, 'routed'), trailArn } = spec;
  const pattern = {
    source: ['aws.s3'],
    'detail-type': ['AWS API Call via CloudTrail', 'AWS Service Event via CloudTrail'],
    detail: {
      eventSource: ['s3.amazonaws.com'],
      eventName: [...routedOperations],
      errorCode: [{ exists: false }],
      requestParameters: { bucketName: [spec.bucket] },
    },
  };
  const rule = ruleOf(spec, pattern, { Id: 'routed-topic', Arn, InputTransformer: transformer });
  return { ...through(spec, 'routed'), rule, ...defined({ trailArn }) };
}

/** What the trail records for other owners. */
export function theirSelectors({ spec, observed }: Look): readonly unknown[] | undefined {
  const trail = existing(observed.trail);
  return trail && foreignSelectors(trail.selectors, spec);
}

export function trailChanges(look: Look): readonly Change[] {
  const { spec, observed } = look;
  const trail = existing(observed.trail);
  if (trail === undefined || recordsBucket(trail.selectors, spec)) return [];
  const { arn, selectors } = trail;
  const foreign = foreignSelectors(selectors, spec);
  const touches = foreign.length === 0 ? [] : [{ kind: 'trail', arn, before: foreign, after: foreign } as const];
  return [{ ...changeOf(look, trail, withSelector(selectors, spec)), action: 'change', touches }];
}

function changeOf(
  { tools: { aws } }: Look,
  { arn, selectors: before }: ObservedTrail,
  after: Selectors,
): Omit<Change, 'action' | 'touches'> {
  return {
    part: 'trail',
    name: arn,
    before: selectorsInput(before),
    after: selectorsInput(after),
    async make(signal) {
      const now = existing(await aws.trailOf(arn, signal))?.selectors;
      if (canonicalJson(now) === canonicalJson(before)) await aws.putSelectors(arn, after, signal);
    },
  };
}

/** Tally silently leaves a bucket that someone else added to the trail. For basic selectors, only the bucket's record shows who did. */
export function trailRemoval(look: Look, { made }: Remains): Change | Kept | undefined {
  const { spec, observed } = look;
  const trail = existing(observed.trail);
  if (trail === undefined || (trail.selectors.kind === 'basic' && !made.includes(trail.arn))) return undefined;
  const after = withoutSelector(trail.selectors, spec);
  if (after === undefined) return undefined;
  if (typeof after === 'string') return { name: `the selector of ${spec.bucket} in ${trail.arn}`, reason: after };
  return { ...changeOf(look, trail, after), action: 'remove', touches: [] };
}

/** Tally doesn't read a trail that it may not change, but prints the selector for the trail's owner. */
export const trailCheck: Check = ({ spec, desired: { trailArn }, observed }) => {
  const { bucket, source, byHand, trailBucket } = spec;
  if (source !== 'routed') return undefined;
  const why = 'the rule matches only what a trail records';
  if (byHand === true || (trailArn === undefined && trailBucket !== bucket)) return uncheckedTrail(spec, why);
  return trailFinding(spec, existing(observed.trail), why);
};

function trailFinding(spec: ConnectionSpec, found: ObservedTrail | undefined, why: string): Finding | undefined {
  const { bucket, trailArn, trailBucket } = spec;
  if ((found?.logBucket ?? trailBucket) === bucket)
    return blocking(
      'connect.trail',
      `the trail delivers its logs to ${bucket}`,
      'it would endlessly record its own deliveries',
      'TALLY_TRAIL_ARN=… another trail',
    );
  if (found === undefined) return blocking('connect.trail', `there is no trail ${trailArn}`, why, 'aws cloudtrail describe-trails');
  const { arn, homeRegion, isLogging } = found;
  return isLogging
    ? undefined
    : broken('connect.trail', `the trail ${arn} is stopped`, why, `aws cloudtrail start-logging --region ${homeRegion} --name ${arn}`);
}

function uncheckedTrail(spec: ConnectionSpec, why: string): Finding {
  const { bucket, trailBucket } = spec;
  const which = trailBucket === undefined ? 'one that TALLY_TRAIL_ARN does not name' : `the one that delivers to ${trailBucket}`;
  const what = `a trail must record the data events of ${bucket}, and Tally neither reads nor changes ${which}`;
  return note('connect.trail-unchecked', what, why, adding(spec));
}

/** A write replaces all of a trail's selectors: with this one alone, it would no longer record anything else. */
function adding(spec: ConnectionSpec): string {
  const [advanced, basic] = printedSelectors(spec).map((selector) => JSON.stringify([selector]));
  return `add this to the trail's selectors. put-event-selectors replaces all of them, so also send those that get-event-selectors shows: ${advanced}, or, if the trail has basic selectors, ${basic}`;
}
