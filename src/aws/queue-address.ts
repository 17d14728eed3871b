/** Where to send requests about a queue, and the region to sign them for. Both follow from the queue's URL. */
import { SQSClient } from '@aws-sdk/client-sqs';
import { LEGACY_HOST, regionInQueueUrl } from './queue-url.rules.ts';

/** An endpoint that replaces the one of AWS; absent: the SDK finds the endpoint by the region. */
interface ExplicitEndpoint {
  readonly endpoint?: string;
  readonly useFipsEndpoint?: false;
  readonly useDualstackEndpoint?: false;
}

export interface QueueAddress extends ExplicitEndpoint {
  readonly region: string;
}

/**
 * The address of a queue. A given endpoint comes first. For a regular host of SQS, and for a legacy one, the SDK finds the
 * endpoint, so that its switches for FIPS and dual-stack endpoints apply. Any other host is used as it is.
 */
export function queueAddress(queueUrl: string, given: { readonly region: string; readonly endpoint: string | undefined }): QueueAddress {
  const { host, origin } = new URL(queueUrl);
  const region = regionInQueueUrl(queueUrl) ?? given.region;
  // private DNS names of VPC endpoints do not cover the legacy hosts
  const isRegular = host === regularHost(region) || LEGACY_HOST.test(host);
  return { region, ...explicitEndpoint(given.endpoint ?? (isRegular ? undefined : origin)) };
}

/** The client options for an endpoint. The SDK refuses an endpoint together with its switches for FIPS and dual-stack, so they are off. */
export function explicitEndpoint(endpoint: string | undefined): ExplicitEndpoint {
  return endpoint === undefined ? {} : { endpoint, useFipsEndpoint: false, useDualstackEndpoint: false };
}

/** The host that the SDK's own rules give to SQS in a region. They know the domains of all partitions. */
function regularHost(region: string): string | undefined {
  try {
    const { endpointProvider } = new SQSClient({ region }).config;
    return endpointProvider({ Region: region, UseFIPS: false, UseDualStack: false }).url.host;
  } catch {
    // what is in the place of the region is no name of a region
    return undefined;
  }
}
