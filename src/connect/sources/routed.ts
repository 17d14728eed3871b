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
  selectorName,
  selectorsInput,
  selectorText,
  withoutSelector,
  withSelector,
  type Selectors,
} from '../trail.rules.ts';
import type { Provisioner } from '../aws/provisioner.ts';
import { changedMeanwhile } from './write-notification.ts';
import { ruleOf } from './eventbridge.ts';
import { through, type Check, type Desired, type Look } from './look.ts';

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

/** The bucket, with what the records say of the trail. */
function selecting({ spec, observed: { selected = [] } }: Pick<Look, 'spec' | 'observed'>) {
  return { ...spec, selected };
}

/** Of each trail, what others have it record. */
export function theirSelectors(look: Pick<Look, 'spec' | 'observed'>): readonly unknown[] {
  const { trails = [] } = look.observed;
  return trails.map(({ arn, selectors }) => [arn, selectors && foreignSelectors(selectors, selecting(look))]);
}

/** Only the trail that the settings give to Tally is written to, and only if it does not record the bucket by any selector. */
export function trailChanges(look: Look): readonly Change[] {
  const [{ arn, selectors } = { arn: '', selectors: undefined }] = look.observed.trails ?? [];
  if (look.spec.trailArn === undefined || selectors === undefined || recordsBucket(selectors, look.spec)) return [];
  const theirs = foreignSelectors(selectors, selecting(look));
  const before = [...theirs, ...alteredSelectors(selectors, look.spec)];
  const touches = before.length === 0 ? [] : [{ kind: 'trail', arn, before, after: theirs } as const];
  return [{ ...changeOf(look, arn, selectors, withSelector(selectors, look.spec)), action: 'change', touches }];
}

function changeOf(look: Look, name: string, before: Selectors, after: Selectors): Omit<Change, 'action' | 'touches'> {
  const { spec, observed, tools } = look;
  const ours = { ...spec, selected: [...(observed.selected ?? []), spec.bucket] };
  const present = async (signal?: AbortSignal): Promise<Selectors | undefined> =>
    (await tools.aws.trailsOf(spec, { arn: name }, signal))[0]?.selectors;
  return {
    part: 'trail',
    name,
    before: selectorsInput(before),
    after: selectorsInput(after),
    async make(signal) {
      if (canonicalJson(await present(signal)) !== canonicalJson(before)) return;
      await tools.aws.putSelectors(name, after, signal);
      const [theirs = [], wanted = []] = [(await present(signal)) ?? before, before].map((each) => foreignSelectors(each, ours));
      if (canonicalJson(theirs) === canonicalJson(wanted)) return;
      throw changedMeanwhile<unknown>({
        bucket: spec.bucket,
        what: `the selectors of ${name}`,
        before: wanted,
        now: theirs,
        same: canonicalJson,
        name: selectorText,
      });
    },
  };
}

/** Only the trail that the settings give to Tally is written to. A trail must have a selector, so the last one stays. */
export function trailRemoval(look: Look): Change | Kept | undefined {
  const { spec, desired, observed } = look;
  if (desired.trail === undefined) return undefined;
  const name = `the selector of ${spec.bucket} in a trail, ${selectorName(spec)}`;
  if (spec.trailArn === undefined) return { name, reason: 'Tally writes only to the trail in TALLY_TRAIL_ARN' };
  const [{ arn, selectors } = { arn: '', selectors: undefined }] = observed.trails ?? [];
  const after = selectors && withoutSelector(selectors, selecting(look));
  if (selectors === undefined || after === undefined) return undefined;
  if (typeof after === 'string') return { name, reason: after };
  if (after.list.length === 0) return { name, reason: 'it is the only one, and a trail must have one' };
  return { ...changeOf(look, arn, selectors, after), action: 'remove', touches: [] };
}

/** Of a trail that Tally may not change, or that no setting names, the selector is printed. */
export const trailCheck: Check = (look) => {
  const { spec, desired, observed } = look;
  if (desired.trail === undefined) return undefined;
  const { trails = [] } = observed;
  // of several with one bucket of logs, the first that records the bucket
  const trail = trails.find(({ selectors }) => selectors !== undefined && recordsBucket(selectors, spec)) ?? trails[0];
  if (trail === undefined) return noTrail(spec, observed.trails !== undefined);
  return harmful(spec, trail) ?? stopped(trail) ?? unselected(spec, trail);
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

/** What Tally must not write to: selectors that it cannot read, and a trail that would record its own deliveries without end. */
function harmful({ bucket, trailArn }: ConnectionSpec, { arn, selectors, logBucket, homeRegion }: ObservedTrail): Finding | undefined {
  if (logBucket === bucket)
    return blocking(
      'connect.trail-own-bucket',
      `the trail ${arn} delivers its logs to ${bucket}`,
      'the trail would endlessly record and deliver its own deliveries',
      'TALLY_TRAIL_ARN=… another trail',
    );
  if (selectors !== undefined || trailArn === undefined) return undefined;
  return blocking(
    'connect.trail-unreadable',
    `the selectors of ${arn} have an unknown form`,
    'a write would replace them',
    `aws cloudtrail get-event-selectors --region ${homeRegion} --trail-name ${arn}`,
  );
}

function stopped({ arn, isLogging, homeRegion }: ObservedTrail): Finding | undefined {
  if (isLogging) return undefined;
  const fix = `aws cloudtrail start-logging --region ${homeRegion} --name ${arn}`;
  return broken('connect.trail-stopped', `the trail ${arn} is stopped`, 'it records nothing, so the rule matches nothing', fix);
}

/** A trail of Tally's is changed by an apply. */
function unselected(spec: ConnectionSpec, { arn, selectors }: ObservedTrail): Finding | undefined {
  if (spec.trailArn !== undefined || (selectors !== undefined && recordsBucket(selectors, spec))) return undefined;
  return broken(
    'connect.trail-selector',
    `the trail ${arn} does not record the data events of ${spec.bucket}`,
    "the rule matches nothing. Tally does not write to a given trail: add this selector to the trail's existing ones",
    adding(spec, selectors?.kind ?? 'advanced'),
  );
}

/** CloudTrail replaces the selectors of a trail as a whole: with this one alone it would record nothing else any more. */
function adding(spec: ConnectionSpec, kind: Selectors['kind']): string {
  return `add this to the trail's selectors. put-event-selectors replaces all of them, so also send those that get-event-selectors shows: ${JSON.stringify([printedSelector(kind, spec)])}`;
}
