/**
 * The source `routed`: the bucket's rule for what an audit trail records, with an input transformer, to a topic, and the bucket in a
 * selector of the trail. A rule matches only what a trail records.
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
import { changedMeanwhile } from './write-notification.ts';
import { ruleOf } from './eventbridge.ts';
import { existing, through, type Check, type Desired, type Look, type Remains } from './look.ts';

/**
 * The input transformer. Placeholders have no quotes: EventBridge then quotes the values itself, so that keys with quotes or
 * backslashes survive. A value that an event does not have arrives as an empty string. It passes on what tells a failed call and the
 * calls of one bulk delete, too.
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

/** The trail, if its selectors have a form that Tally knows. */
function knownTrail({ observed }: Look): { readonly arn: string; readonly selectors: Selectors } | undefined {
  const { arn, selectors } = existing(observed.trail) ?? {};
  return arn === undefined || selectors === undefined ? undefined : { arn, selectors };
}

/** Of the trail that Tally may write to, what others have it record. */
export function theirSelectors(look: Look): readonly unknown[] | undefined {
  const trail = knownTrail(look);
  return trail && foreignSelectors(trail.selectors, look.spec);
}

export function trailChanges(look: Look): readonly Change[] {
  const { spec } = look;
  const trail = knownTrail(look);
  if (trail === undefined || recordsBucket(trail.selectors, spec)) return [];
  const { arn, selectors } = trail;
  const foreign = foreignSelectors(selectors, spec);
  const touches = foreign.length === 0 ? [] : [{ kind: 'trail', arn, before: foreign, after: foreign } as const];
  return [{ ...changeOf(look, arn, selectors, withSelector(selectors, spec)), action: 'change', touches }];
}

function changeOf({ spec, tools: { aws } }: Look, name: string, before: Selectors, after: Selectors): Omit<Change, 'action' | 'touches'> {
  const read = async (signal?: AbortSignal) => existing(await aws.trailOf(name, signal))?.selectors;
  return {
    part: 'trail',
    name,
    before: selectorsInput(before),
    after: selectorsInput(after),
    async make(signal) {
      if (canonicalJson(await read(signal)) !== canonicalJson(before)) return;
      await aws.putSelectors(name, after, signal);
      const found = await read(signal);
      const [wanted, now] = [foreignSelectors(before, spec), found && foreignSelectors(found, spec)];
      if (canonicalJson(now) === canonicalJson(wanted)) return;
      throw changedMeanwhile(spec.bucket, `the selectors of ${name}`, wanted, now);
    },
  };
}

/** If someone else put the bucket into a trail, Tally leaves it there silently. Only the bucket's record says whether Tally wrote a basic selector. */
export function trailRemoval(look: Look, { made }: Remains): Change | Kept | undefined {
  const { spec } = look;
  const trail = knownTrail(look);
  if (trail === undefined || (trail.selectors.kind === 'basic' && !made.includes(trail.arn))) return undefined;
  const after = withoutSelector(trail.selectors, spec);
  if (after === undefined) return undefined;
  if (typeof after === 'string') return { name: `the selector of ${spec.bucket} in ${trail.arn}`, reason: after };
  return { ...changeOf(look, trail.arn, trail.selectors, after), action: 'remove', touches: [] };
}

/** Tally doesn't read a trail that it may not change. It prints the selector for the trail's owner. */
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
  const { arn, homeRegion, isLogging, selectors } = found;
  if (!isLogging)
    return broken('connect.trail', `the trail ${arn} is stopped`, why, `aws cloudtrail start-logging --region ${homeRegion} --name ${arn}`);
  if (selectors !== undefined) return undefined;
  return broken(
    'connect.trail',
    `the trail ${arn} has selectors that this version does not know, so Tally does not write them`,
    why,
    adding(spec),
  );
}

function uncheckedTrail(spec: ConnectionSpec, why: string): Finding {
  const { bucket, trailBucket } = spec;
  const which = trailBucket === undefined ? 'one that TALLY_TRAIL_ARN does not name' : `the one that delivers to ${trailBucket}`;
  const what = `a trail must record the data events of ${bucket}, and Tally neither reads nor changes ${which}`;
  return note('connect.trail-unchecked', what, why, adding(spec));
}

/** CloudTrail replaces the selectors of a trail as a whole: with this one alone it would record nothing else any more. */
function adding(spec: ConnectionSpec): string {
  const [advanced, basic] = printedSelectors(spec).map((selector) => JSON.stringify([selector]));
  return `add this to the trail's selectors. put-event-selectors replaces all of them, so also send those that get-event-selectors shows: ${advanced}, or, if the trail has basic selectors, ${basic}`;
}
