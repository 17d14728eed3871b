/** Messages as they reach a bucket queue: S3's records in SNS envelopes, with everything that AWS puts around what matters. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { formEncoded } from '../../support/event-fixtures.ts';
import { sequencerOf } from '../../../src/demo/clock.ts';

/** One object that a message tells of. */
export interface BenchObject {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag: string;
}

export const BUCKET = 'bench-bucket';
const TOPIC_ARN = 'arn:aws:sns:us-east-1:000000000000:bench-events';
const FOLDERS = ['logs', 'Invoices', 'images', 'exports', 'backups'];
const EXTENSIONS = ['json', 'parquet', 'jpg', 'csv.gz', 'pdf'];

/** The object of a number: the same one whoever asks, each with a key of its own. `run` sets the keys of one run apart. */
export function benchObject(run: string, number: number): BenchObject {
  const digest = createHash('md5').update(`${run} ${number}`).digest('hex');
  const part = number % 5;
  const folder = FOLDERS[part] ?? '';
  const host = String(number % 97).padStart(3, '0');
  const key = `${folder}/${run}/region=eu-central-1/date=2026-11-21/host-${host}/part-${String(number).padStart(7, '0')}.${EXTENSIONS[part] ?? ''}`;
  return { key, sizeBytes: Number.parseInt(digest.slice(0, 6), 16), etag: digest };
}

/** A native notification of a put that happened at `atMs`, in an SNS envelope: about 1.9 kB. */
export function nativeMessage(bucket: string, object: BenchObject, atMs: number): string {
  return inEnvelope(
    {
      Records: [
        {
          eventVersion: '2.1',
          // spells keys as S3 does, and is known to at any endpoint
          eventSource: 'minio:s3',
          awsRegion: 'us-east-1',
          eventTime: new Date(atMs).toISOString(),
          eventName: 'ObjectCreated:Put',
          userIdentity: { principalId: 'AWS:AROAEXAMPLEEXAMPLE123:i-0123456789abcdef0' },
          requestParameters: { sourceIPAddress: '203.0.113.17' },
          responseElements: {
            'x-amz-request-id': object.etag.slice(0, 16).toUpperCase(),
            'x-amz-id-2': Buffer.from(object.etag + object.etag + object.etag.slice(0, 16)).toString('base64'),
          },
          s3: {
            s3SchemaVersion: '1.0',
            configurationId: 'tf-s3-topic-20261121094512345600000001',
            bucket: { name: bucket, ownerIdentity: { principalId: 'A3NL1KOZZKExample' }, arn: `arn:aws:s3:::${bucket}` },
            object: { key: formEncoded(object.key), size: object.sizeBytes, eTag: object.etag, sequencer: sequencerOf(atMs * 1_000) },
          },
        },
      ],
    },
    atMs,
  );
}

/** The record that a routing rule makes of a PutObject at `atMs` in whole seconds, in an SNS envelope. It says no size and no etag: these are HEADed. */
export function routedMessage(bucket: string, object: Pick<BenchObject, 'key'>, atMs: number): string {
  const eventTime = `${new Date(atMs).toISOString().slice(0, 19)}Z`;
  const s3 = { bucket: { name: bucket }, object: { eTag: '', isDeleteMarker: '', key: object.key, versionId: '' } };
  return inEnvelope({ Records: [{ awsRegion: 'us-east-1', eventName: 'PutObject', eventTime, errorCode: '', s3 }] }, atMs);
}

function inEnvelope(message: object, atMs: number): string {
  return JSON.stringify({
    Type: 'Notification',
    MessageId: randomUUID(),
    TopicArn: TOPIC_ARN,
    Subject: 'Amazon S3 Notification',
    Message: JSON.stringify(message),
    Timestamp: new Date(atMs).toISOString(),
    SignatureVersion: '1',
    Signature: SIGNATURE,
    SigningCertURL: 'https://sns.us-east-1.amazonaws.com/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem',
    UnsubscribeURL: `https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=${TOPIC_ARN}:0d5ad6d3-1b6c-4f4b-9d5f-8b0a4e5f9d11`,
  });
}

/** As long as a real one; nobody here checks it. */
const SIGNATURE = randomBytes(256).toString('base64');
