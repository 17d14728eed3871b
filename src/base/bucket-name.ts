/** Bucket names. The panel imports this file too, so it contains no schema. */

/** Less strict than S3's own rules: it permits every character that an S3-compatible store is known to allow. */
export const BUCKET_NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]{1,253}[a-zA-Z0-9]$/;

/** Whether a text can be the name of a bucket, old us-east-1 names included: 3 to 255 letters, digits, `.`, `_` and `-`, with a letter or digit at both ends. */
export function isBucketName(text: string): boolean {
  return BUCKET_NAME.test(text);
}
