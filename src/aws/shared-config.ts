/** Reads what AWS_PROFILE selects from the AWS SDK's shared files (~/.aws/config, or AWS_CONFIG_FILE), with the SDK's own reader. */
import { CONFIG_PREFIX_SEPARATOR, loadConfig, NODE_REGION_CONFIG_FILE_OPTIONS } from '@smithy/core/config';

/** The values of the profile. They are undefined if the profile does not have them. */
export interface SharedConfig {
  readonly region: string | undefined;
  readonly endpoints: {
    readonly sqs: string | undefined;
    readonly sns: string | undefined;
    readonly s3: string | undefined;
    readonly events: string | undefined;
    readonly trails: string | undefined;
  };
  /** Whether configured endpoints are to be ignored, those of the environment included. */
  readonly ignoresEndpoints: boolean;
}

type Select = Parameters<typeof loadConfig<string>>[0]['configFileSelector'];

/** Reads the profile. A mistake in the files counts as nothing here: the SDK reads them too, and reports it with the first request. */
export async function readSharedConfig(): Promise<SharedConfig> {
  const [region, ignores, sqs, sns, s3, events, trails] = await Promise.all([
    valueOf((profile) => profile['region'], NODE_REGION_CONFIG_FILE_OPTIONS),
    valueOf((profile) => profile['ignore_configured_endpoint_urls']),
    valueOf(endpointOf('sqs')),
    valueOf(endpointOf('sns')),
    valueOf(endpointOf('s3')),
    valueOf(endpointOf('eventbridge')),
    valueOf(endpointOf('cloudtrail')),
  ]);
  return { region, endpoints: { sqs, sns, s3, events, trails }, ignoresEndpoints: ignores === 'true' };
}

async function valueOf(select: Select, options: Parameters<typeof loadConfig>[1] = {}): Promise<string | undefined> {
  const read = loadConfig({ environmentVariableSelector: () => undefined, configFileSelector: select, default: '' }, options);
  const value = await read().catch(() => '');
  return value === '' ? undefined : value;
}

/** Selects the endpoint of the service in the section `services` that the profile names, else that of the profile for all services. */
function endpointOf(service: string): Select {
  return (profile, file) => {
    const section = profile['services'] === undefined ? undefined : file?.[`services${CONFIG_PREFIX_SEPARATOR}${profile['services']}`];
    return section?.[`${service}${CONFIG_PREFIX_SEPARATOR}endpoint_url`] ?? profile['endpoint_url'];
  };
}
