/** The account that must own a bucket, as requests to S3 name it. */

/** For a bucket whose account is not known, no account is named: stores that only speak S3's protocol may not know the header. */
export function ownerInput({ account }: { readonly account?: string | undefined }): { readonly ExpectedBucketOwner?: string } {
  return account === undefined ? {} : { ExpectedBucketOwner: account };
}
