/**
 * The input transformers of the routed source. Placeholders have no quotes: EventBridge then quotes the values itself, so that
 * keys with quotes or backslashes survive. A value that an event does not have arrives as an empty string.
 */

export interface InputTransformer {
  readonly paths: Readonly<Record<string, string>>;
  readonly template: string;
}

/** Tally's own: it passes on what tells a failed call and the calls of one bulk delete, too. */
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

/** The least that is understood, with the names of the specification (`--minimal`). */
export const minimalTransformer: InputTransformer = {
  paths: {
    cloudRegion: '$.detail.awsRegion',
    bucketName: '$.detail.requestParameters.bucketName',
    eventName: '$.detail.eventName',
    eventTime: '$.detail.eventTime',
    isDeleteMarker: '$.detail.responseElements.x-amz-delete-marker',
    key: '$.detail.requestParameters.key',
    versionId: '$.detail.responseElements.x-amz-version-id',
  },
  template:
    '{"Records":[{"cloudRegion":<cloudRegion>,"eventName":<eventName>,"eventTime":<eventTime>,"storage":{"bucket":{"name":<bucketName>},"object":{"eTag":"","isDeleteMarker":<isDeleteMarker>,"key":<key>,"versionId":<versionId>}}}]}',
};
