/**
 * The source `routed`: the bucket's rule for what an audit trail records, with an input transformer, to a topic, and the bucket in a
 * selector of the trail. A rule matches only what a trail records.
 */
import { defined } from '../../base/defined.ts';
import { canonicalJson } from '../canonical.rules.ts';
import type { ConnectionSpec } from '../connection.rules.ts';
import { blocking, broken, note, type Finding } from '../finding.rules.ts';
import { parseArn, topicArnOf } from '../names.rules.ts';
import type { InputTransformer, ObservedTrail } from '../parts.rules.ts';
import type { Change, Kept } from '../plan.rules.ts';
import {
  alteredSelectors,
  foreignSelectors,
  printedSelector,
  recordsBucket,
  routedOperations,
  selectorsInput,
  selectorText,
  withoutSelector,
  withSelector,
  type Selectors,
} from '../trail.rules.ts';
import type { Provisioner } from '../aws/provisioner.ts';
import { changedMeanwhile } from './write-notification.ts';
import { ruleOf } from './eventbridge.ts';
import { through, type Check, type Desired, type Look, type Remains } from './look.ts';

/**
 * The input transformer. Placeholders have no quotes: EventBridge then quotes the values itself, so that keys with quotes or
 * backslashes survive. A value that an event does not have arrives as an empty string. It passes on what tells a failed call and the
 * calls of one bulk delete, too.
 */
export const transformer: InputTransformer = {
  paths: {
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
  template:
    '{"Records":[{"awsRegion":<awsRegion>,"eventName":<eventName>,"eventTime":<eventTime>,"eventID":<eventID>,"eventSource":<eventSource>,"errorCode":<errorCode>,"requestID":<requestID>,"requestParameters":{"versionId":<requestedVersionId>},"s3":{"bucket":{"name":<bucket>},"object":{"eTag":"","isDeleteMarker":<isDeleteMarker>,"key":<key>,"versionId":<versionId>}}}]}',
};

export function desiredRouted(spec: ConnectionSpec): Desired {
  const { topicArn: arn = topicArnOf(spec.installation, spec, 'routed') } = spec;
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
  const trail = defined({ arn: spec.trailArn, logBucket: spec.trailBucket });
  return { ...through(spec, 'routed'), rule: ruleOf(spec, pattern, { id: 'routed-topic', arn, transformer }), trail };
}

/** The topic that a request or a record names; undefined if it is the one that Tally makes, wherever that is. */
export function routedTopic(topicArn: string | undefined, installation: string): string | undefined {
  const own = topicArnOf(installation, { partition: 'aws', region: '', account: '' }, 'routed').split(':').at(-1);
  return parseArn(topicArn ?? '')?.resource === own ? undefined : topicArn;
}

/** The trails that the settings name. Undefined: they name none. */
export function readTrails(
  aws: Provisioner,
  spec: ConnectionSpec,
  { arn, logBucket }: NonNullable<Desired['trail']>,
  signal?: AbortSignal,
): Promise<readonly ObservedTrail[]> | undefined {
  if (arn !== undefined) return aws.trailsOf(spec, { arn }, signal);
  return logBucket === undefined ? undefined : aws.trailsOf(spec, { logBucket }, signal);
}

/** The trail that Tally may write to: the settings give it to Tally, and its selectors have a form that Tally knows. */
function ownTrail({ spec, observed: { trails = [] } }: Look): { readonly arn: string; readonly selectors: Selectors } | undefined {
  const [{ arn, selectors } = { arn: '', selectors: undefined }] = trails;
  return spec.trailArn === undefined || selectors === undefined ? undefined : { arn, selectors };
}

/** Of the trail that Tally may write to, what others have it record. */
export function theirSelectors(look: Look): readonly unknown[] | undefined {
  const trail = ownTrail(look);
  return trail && foreignSelectors(trail.selectors, look.spec);
}

/** The trail is written to only if it does not record the bucket by any selector. */
export function trailChanges(look: Look): readonly Change[] {
  const { spec } = look;
  const trail = ownTrail(look);
  if (trail === undefined || recordsBucket(trail.selectors, spec)) return [];
  const { arn, selectors } = trail;
  const after = foreignSelectors(selectors, spec);
  const before = [...after, ...alteredSelectors(selectors, spec)];
  const touches = before.length === 0 ? [] : [{ kind: 'trail', arn, before, after } as const];
  return [{ ...changeOf(look, arn, selectors, withSelector(selectors, spec)), action: 'change', touches }];
}

function changeOf({ spec, tools: { aws } }: Look, name: string, before: Selectors, after: Selectors): Omit<Change, 'action' | 'touches'> {
  const read = async (signal?: AbortSignal) => (await aws.trailsOf(spec, { arn: name }, signal))[0]?.selectors;
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
      const what = `the selectors of ${name}`;
      throw changedMeanwhile({ bucket: spec.bucket, what, before: wanted, now, same: canonicalJson, name: selectorText });
    },
  };
}

/** If someone else put the bucket into a trail, Tally leaves it there silently. Only the bucket's record says whether Tally wrote a basic selector. */
export function trailRemoval(look: Look, { made }: Remains): Change | Kept | undefined {
  const { spec } = look;
  const trail = ownTrail(look);
  if (trail === undefined || (trail.selectors.kind === 'basic' && !made.includes(trail.arn))) return undefined;
  const after = withoutSelector(trail.selectors, spec);
  if (after === undefined) return undefined;
  if (typeof after === 'string') return { name: `the selector of ${spec.bucket} in ${trail.arn}`, reason: after };
  return { ...changeOf(look, trail.arn, trail.selectors, after), action: 'remove', touches: [] };
}

function isRecording({ selectors }: ObservedTrail, spec: ConnectionSpec): boolean {
  return selectors !== undefined && recordsBucket(selectors, spec);
}

/** Of a trail that Tally doesn't write to, or that no setting names, the selector is printed. */
export const trailCheck: Check = (look) => {
  const { spec, desired, observed } = look;
  if (desired.trail === undefined) return undefined;
  const { trails = [] } = observed;
  // of several with one bucket of logs, the first that records the bucket
  const trail = trails.find((each) => isRecording(each, spec)) ?? trails[0];
  if (trail === undefined) return noTrail(spec, observed.trails !== undefined);
  return ownDeliveries(spec, trail) ?? stopped(trail) ?? (ownTrail(look) === undefined ? unselected(spec, trail) : undefined);
};

function noTrail(spec: ConnectionSpec, isNamed: boolean): Finding {
  const { bucket, trailArn, trailBucket = '' } = spec;
  if (isNamed)
    return blocking(
      'connect.trail-missing',
      `there is no trail for ${trailArn ?? trailBucket}`,
      'the rule matches only what a trail records',
      'aws cloudtrail describe-trails',
    );
  return note(
    'connect.trail-unchecked',
    `a trail must record the data events of ${bucket}, and TALLY_TRAIL_ARN and TALLY_TRAIL_BUCKET name none`,
    'the rule matches nothing without them',
    adding(spec, 'advanced'),
  );
}

function ownDeliveries({ bucket }: ConnectionSpec, { arn, logBucket }: ObservedTrail): Finding | undefined {
  if (logBucket !== bucket) return undefined;
  return blocking(
    'connect.trail-own-bucket',
    `the trail ${arn} delivers its logs to ${bucket}`,
    'the trail would endlessly record and deliver its own deliveries',
    'TALLY_TRAIL_ARN=… another trail',
  );
}

function stopped({ arn, isLogging, homeRegion }: ObservedTrail): Finding | undefined {
  if (isLogging) return undefined;
  const fix = `aws cloudtrail start-logging --region ${homeRegion} --name ${arn}`;
  return broken('connect.trail-stopped', `the trail ${arn} is stopped`, 'it records nothing, so the rule matches nothing', fix);
}

function unselected(spec: ConnectionSpec, trail: ObservedTrail): Finding | undefined {
  if (isRecording(trail, spec)) return undefined;
  return broken(
    'connect.trail-selector',
    `no selector of the trail ${trail.arn} that Tally can read records the data events of ${spec.bucket}`,
    "the rule matches nothing. Tally writes only to selectors that it can read, of the trail in TALLY_TRAIL_ARN: add this selector to the trail's existing ones",
    adding(spec, trail.selectors?.kind ?? 'advanced'),
  );
}

/** CloudTrail replaces the selectors of a trail as a whole: with this one alone it would record nothing else any more. */
function adding(spec: ConnectionSpec, kind: Selectors['kind']): string {
  return `add this to the trail's selectors. put-event-selectors replaces all of them, so also send those that get-event-selectors shows: ${JSON.stringify([printedSelector(kind, spec)])}`;
}
