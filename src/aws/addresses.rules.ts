/** The addresses of AWS's services: what a queue's URL says about its region, and the endpoints that are configured. */

/** The regions of all partitions: eu-central-1, us-gov-west-1, cn-north-1, us-isob-east-1, eusc-de-east-1. */
const REGION = '[a-z]{2,5}(?:-[a-z]+)+-\\d+';
/** Matches `sqs.REGION.…` and `sqs-fips.REGION.…`: AWS in all partitions, VPC endpoints (`vpce-ID.sqs.REGION.vpce.amazonaws.com`) and LocalStack. */
const REGION_IN_HOST = new RegExp(`(?:^|\\.)sqs(?:-fips)?\\.(${REGION})\\.`);
/** The hosts that SQS had first, and that old queue URLs still contain; without a region it is us-east-1. LocalStack has such hosts too. */
const REGION_IN_LEGACY_HOST = new RegExp(`^(${REGION})\\.queue\\.`);
export const LEGACY_HOST = new RegExp(`^(?:${REGION}\\.)?queue\\.amazonaws\\.com(?:\\.cn)?$`);
const REGION_OF_FIRST_HOST = 'us-east-1';

/** A queue's URL at the address of another one of its region. SQS answers with its regular host, which may be out of reach from where the other one's (a VPC endpoint) is used. */
export function urlBeside(queueUrl: string, other: string): string {
  // resolved as a reference, a path that begins with two slashes would name a host
  return Object.assign(new URL(other), { pathname: new URL(queueUrl).pathname, search: '', hash: '' }).href;
}

/** The region in a queue's URL; undefined if its host contains none. */
export function regionInQueueUrl(queueUrl: string): string | undefined {
  const { hostname } = new URL(queueUrl);
  const found = REGION_IN_HOST.exec(hostname) ?? REGION_IN_LEGACY_HOST.exec(hostname);
  return found?.[1] ?? (LEGACY_HOST.test(hostname) ? REGION_OF_FIRST_HOST : undefined);
}

/** The services of AWS whose endpoints can be configured, each with its name in the SDK's variables and, in lower case, in profiles. */
const services = { sqs: 'SQS', sns: 'SNS', s3: 'S3', events: 'EVENTBRIDGE', trails: 'CLOUDTRAIL' } as const;

/** An absent endpoint is that of AWS itself. */
export type Endpoints = { readonly [Service in keyof typeof services]?: string | undefined };

/** The endpoint of each service. */
export function endpointsBy(endpointOf: (service: string) => string | undefined): Endpoints {
  return Object.fromEntries(Object.entries(services).map(([service, name]) => [service, endpointOf(name)]));
}
