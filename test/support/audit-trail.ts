/**
 * The audit trail that LocalStack lacks: tests tell EventBridge of each call as CloudTrail would. Shape: “CloudTrail
 * record contents” in the CloudTrail user guide, and CloudTrail's events in EventBridge's.
 */
import { z } from 'zod';
import type { InputTransformer } from '../../src/connect/plan.rules.ts';
import { fencesOf, textOf } from '../docs/pages.ts';
import type { TestAws } from './servers/aws.ts';

/** One call of S3's API, as a trail tells it. */
export interface Call {
  readonly eventName: 'PutObject' | 'CopyObject' | 'CompleteMultipartUpload' | 'DeleteObject' | 'DeleteObjects';
  readonly bucket: string;
  /** Absent: DeleteObjects. */
  readonly key?: string;
  /** What the answer's headers said. */
  readonly versionId?: string;
  readonly isDeleteMarker?: boolean;
  /** The request's ID; single deletes of one DeleteObjects call share it. */
  readonly requestId?: string;
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

/** The input transformer that users are given: docs/guides/connect.md has it. */
export const documentedTransformer = z
  .object({ InputPathsMap: z.record(z.string(), z.string()), InputTemplate: z.string() })
  .parse(JSON.parse(fencesOf(textOf('docs/guides/connect.md')).find(({ language }) => language === 'json')?.text ?? ''));

/** Tells EventBridge of the calls. It takes ten events a request. */
export async function tellTrail(aws: TestAws, calls: readonly Call[]): Promise<void> {
  for (let start = 0; start < calls.length; start += 10) await aws.putEvents(calls.slice(start, start + 10).map(trailEvent));
}

/** The event of one call, as EventBridge gets it. */
export function trailEvent({ eventName, bucket, key, versionId, isDeleteMarker, requestId, errorCode, timeMs }: Call) {
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
      ...(requestId !== undefined && { requestID: requestId }),
      readOnly: false,
      eventType: 'AwsApiCall',
      managementEvent: false,
      eventCategory: 'Data',
    },
  };
}

/** The least that is understood, with the names of the specification. */
export const specifiedTransformer: InputTransformer = {
  InputPathsMap: {
    cloudRegion: '$.detail.awsRegion',
    bucketName: '$.detail.requestParameters.bucketName',
    eventName: '$.detail.eventName',
    eventTime: '$.detail.eventTime',
    isDeleteMarker: '$.detail.responseElements.x-amz-delete-marker',
    key: '$.detail.requestParameters.key',
    versionId: '$.detail.responseElements.x-amz-version-id',
  },
  InputTemplate:
    '{"Records":[{"cloudRegion":<cloudRegion>,"eventName":<eventName>,"eventTime":<eventTime>,"storage":{"bucket":{"name":<bucketName>},"object":{"eTag":"","isDeleteMarker":<isDeleteMarker>,"key":<key>,"versionId":<versionId>}}}]}',
};
