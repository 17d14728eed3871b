/** The settings for S3 requests, and the AWS SDK variables that Tally reads. */
import { endpointsBy, type Endpoints } from '../aws/addresses.rules.ts';
import { optionalFlag } from './fields.ts';

export const s3Settings = {
  TALLY_S3_FORCE_PATH_STYLE: optionalFlag.describe(
    'Whether S3 requests use path-style addresses. The default is true if AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_S3 is set, because other S3-compatible stores often need it, else false.',
  ),
};

/** The values of the AWS SDK’s own variables that Tally uses. Credentials and the shared files are left to the SDK. */
export interface AwsEnvironment {
  /** Absent: that of the profile. */
  readonly region: string | undefined;
  /** An absent endpoint is that of the profile, else that of AWS itself. */
  readonly endpoints: Endpoints;
  /** Whether all configured endpoints are to be ignored; undefined leaves it to the profile. */
  readonly ignoresEndpoints: boolean | undefined;
}

/** Reads the variables as the SDK does: AWS_REGION, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>. */
export function awsEnvironment(environment: Readonly<Record<string, string | undefined>>): AwsEnvironment {
  const set = (name: string): string | undefined => (environment[name] === '' ? undefined : environment[name]);
  const ignores = set('AWS_IGNORE_CONFIGURED_ENDPOINT_URLS');
  return {
    region: set('AWS_REGION') ?? set('AWS_DEFAULT_REGION'),
    endpoints: endpointsBy((service) => set(`AWS_ENDPOINT_URL_${service}`) ?? set('AWS_ENDPOINT_URL')),
    ignoresEndpoints: ignores === undefined ? undefined : ignores === 'true',
  };
}
