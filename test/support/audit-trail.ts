/**
 * The audit trail that LocalStack lacks: tests tell EventBridge of each call as CloudTrail would. Shape: “CloudTrail
 * record contents” in the CloudTrail user guide, and CloudTrail's events in EventBridge's.
 */
import type { TestAws } from './aws.ts';

/** One call of S3's API, as a trail tells it. */
export interface Call {
  readonly eventName: 'PutObject' | 'CopyObject' | 'CompleteMultipartUpload' | 'DeleteObject' | 'DeleteObjects';
  readonly bucket: string;
  /** Absent: DeleteObjects. */
  readonly key?: string;
  /** What the answer's headers said. */
  readonly versionId?: string;
  readonly isDeleteMarker?: boolean;
  /** The call failed and changed nothing. */
  readonly errorCode?: string;
  /** When the request came; trails tell whole seconds. */
  readonly timeMs: number;
}

/** The rule pattern of the routed source: the five operations of one bucket, by both ways of CloudTrail. */
export function routingPattern(bucket: string): object {
  return {
    source: ['aws.s3'],
    'detail-type': ['AWS API Call via CloudTrail', 'AWS Service Event via CloudTrail'],
    detail: {
      eventSource: ['s3.amazonaws.com'],
      eventName: ['PutObject', 'CopyObject', 'CompleteMultipartUpload', 'DeleteObject', 'DeleteObjects'],
      requestParameters: { bucketName: [bucket] },
    },
  };
}

const paths = {
  awsRegion: '$.detail.awsRegion',
  eventName: '$.detail.eventName',
  eventTime: '$.detail.eventTime',
  bucket: '$.detail.requestParameters.bucketName',
  key: '$.detail.requestParameters.key',
  versionId: '$.detail.responseElements.x-amz-version-id',
  isDeleteMarker: '$.detail.responseElements.x-amz-delete-marker',
};

const storage = '{"bucket":{"name":<bucket>},"object":{"eTag":"","isDeleteMarker":<isDeleteMarker>,"key":<key>,"versionId":<versionId>}}';

/** The minimal input transformer. */
export const minimalTransformer = {
  paths,
  template: `{"Records":[{"awsRegion":<awsRegion>,"eventName":<eventName>,"eventTime":<eventTime>,"s3":${storage}}]}`,
};

/** The same with the other names in use for region and object. */
export const otherSpellingTransformer = {
  paths,
  template: `{"Records":[{"cloudRegion":<awsRegion>,"eventName":<eventName>,"eventTime":<eventTime>,"storage":${storage}}]}`,
};

/** Tells EventBridge of the calls. It takes ten events a request. */
export async function tellTrail(aws: TestAws, calls: readonly Call[]): Promise<void> {
  for (let start = 0; start < calls.length; start += 10) await aws.putEvents(calls.slice(start, start + 10).map(trailEvent));
}

/** The event of one call, as EventBridge gets it. */
export function trailEvent({ eventName, bucket, key, versionId, isDeleteMarker, errorCode, timeMs }: Call) {
  const responseElements = {
    ...(versionId !== undefined && { 'x-amz-version-id': versionId }),
    ...(isDeleteMarker === true && { 'x-amz-delete-marker': 'true' }),
  };
  return {
    source: 'aws.s3',
    detailType: 'AWS API Call via CloudTrail',
    detail: {
      eventVersion: '1.11',
      userIdentity: { type: 'AWSAccount', principalId: '', accountId: '111122223333' },
      eventTime: `${new Date(timeMs).toISOString().slice(0, 19)}Z`,
      eventSource: 's3.amazonaws.com',
      eventName,
      awsRegion: 'us-east-1',
      ...(errorCode !== undefined && { errorCode, errorMessage: 'Access Denied' }),
      requestParameters: { bucketName: bucket, Host: `${bucket}.s3.amazonaws.com`, ...(key === undefined ? { delete: '' } : { key }) },
      responseElements: Object.keys(responseElements).length === 0 ? null : responseElements,
      readOnly: false,
      eventType: 'AwsApiCall',
      managementEvent: false,
      eventCategory: 'Data',
    },
  };
}
