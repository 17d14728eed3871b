/** Signs requests for Amazon OpenSearch Service (Signature Version 4) with the client's signer and the AWS SDK's credentials. */
import { AwsSigv4Signer, type AwsSigv4SignerResponse } from '@opensearch-project/opensearch/aws-v3';
import { FaultError } from '../../domain/fault.ts';

/** Matches endpoints of domains: NAME.REGION.es.amazonaws.com, and NAME.aos.REGION.on.aws, which supports IPv6 too. */
const REGION_OF_HOST = /\.([a-z0-9-]+)\.es\.amazonaws\.com(?:\.cn)?$|\.aos\.([a-z0-9-]+)\.on\.aws$/;

/** Returns the credentials that are valid now, or throws within a bounded time. */
export type SigningCredentials = () => Promise<{
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}>;

/** The region in the first host name that contains one, else `fallback` (for a custom endpoint). */
export function signingRegion(hosts: readonly string[], fallback: string): string {
  const match = hosts.map((host) => REGION_OF_HOST.exec(host)).find((found) => found !== null);
  return match?.[1] ?? match?.[2] ?? fallback;
}

/**
 * The options that make the client sign its requests. The signature covers the host without its port, so a domain is only
 * reachable at port 443. Requests throw `index.denied` while there are no credentials.
 */
export function signedConnections(
  region: string,
  credentials: SigningCredentials,
): Pick<AwsSigv4SignerResponse, 'Connection' | 'Transport'> {
  async function getCredentials() {
    try {
      return await credentials();
    } catch (error) {
      throw new FaultError('index.denied', error instanceof Error ? error.message : 'the AWS credential chain returned no credentials');
    }
  }

  const { Connection, Transport } = AwsSigv4Signer({ service: 'es', region, getCredentials });
  return { Connection, Transport };
}
