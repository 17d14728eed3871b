/**
 * The credentials of a role that is assumed with those of the process: for what makes and removes connections, so that the
 * daemon's own role needs only to read. They are used until shortly before they expire.
 */
import { defined } from '../../domain/defined.ts';
import type { AssumeRoleCommandOutput, STSClient, STSClientConfig } from '@aws-sdk/client-sts';
import { printable } from '../../domain/printable.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import { CredentialsError, type CredentialsProvider } from './credentials.ts';

/** The least that STS gives. An apply works for 20 s at a time. */
const SESSION_S = 900;
/** No request of a pass may meet credentials that end under it. */
const RENEW_BEFORE_MS = 120_000;
const REASON_LENGTH_MAX = 500;

export interface AssumedRoleOptions {
  readonly roleArn: string;
  readonly externalId?: string | undefined;
  readonly source: CredentialsProvider | { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly region: string;
  readonly requestHandler: NonNullable<STSClientConfig['requestHandler']>;
  /** Default: that of the SDK's own variables, else of AWS. */
  readonly endpoint?: string;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** Creates the provider. Concurrent callers share a request. It throws {@link CredentialsError} if STS refuses. */
export function createAssumedRole({ roleArn, externalId, source, clock, ...sts }: AssumedRoleOptions): CredentialsProvider {
  let client: STSClient | undefined;
  let current: ReturnType<CredentialsProvider> | undefined;
  let renewAtMs = 0;

  async function request(): ReturnType<CredentialsProvider> {
    try {
      // few processes need it
      const { AssumeRoleCommand, STSClient: Client } = await import('@aws-sdk/client-sts');
      client ??= new Client({ ...sts, credentials: source });
      const command = new AssumeRoleCommand({
        RoleArn: roleArn,
        RoleSessionName: 'tally-connect',
        DurationSeconds: SESSION_S,
        ...(externalId !== undefined && { ExternalId: externalId }),
      });
      const credentials = credentialsOf(await client.send(command));
      renewAtMs = (credentials.expiration?.getTime() ?? clock.nowMs() + SESSION_S * 1_000) - RENEW_BEFORE_MS;
      return credentials;
    } catch (error) {
      const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      throw new CredentialsError(`the role ${roleArn} cannot be assumed: ${printable(reason, REASON_LENGTH_MAX)}`);
    }
  }

  return async function credentials() {
    if (current !== undefined && clock.nowMs() < renewAtMs) return current;
    // until it is answered, no one else requests
    renewAtMs = Infinity;
    const requested = request();
    current = requested;
    try {
      return await requested;
    } catch (error) {
      current = undefined;
      renewAtMs = 0;
      throw error;
    }
  };
}

function credentialsOf({ Credentials: given }: AssumeRoleCommandOutput): Awaited<ReturnType<CredentialsProvider>> {
  if (given?.AccessKeyId === undefined || given.SecretAccessKey === undefined) throw new Error('the answer has no credentials');
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: sessionToken, Expiration: expiration } = given;
  return {
    accessKeyId,
    secretAccessKey,
    ...defined({ sessionToken, expiration }),
  };
}
