/** Reads what AWS_PROFILE selects from the AWS SDK's shared files (~/.aws/config, or AWS_CONFIG_FILE), with the SDK's own reader. */
import { CONFIG_PREFIX_SEPARATOR, loadConfig, NODE_REGION_CONFIG_FILE_OPTIONS } from '@smithy/core/config';
import { endpointsBy, type Endpoints } from './addresses.rules.ts';

/** The values of the profile. They are undefined if the profile does not have them. */
export interface SharedConfig {
  readonly region: string | undefined;
  readonly endpoints: Endpoints;
  /** Whether configured endpoints are to be ignored, those of the environment included. */
  readonly ignoresEndpoints: boolean;
}

type Select<Value> = Parameters<typeof loadConfig<Value>>[0]['configFileSelector'];

/** Reads the profile. A mistake in the files counts as nothing here: the SDK reads them too, and reports it with the first request. */
export async function readSharedConfig(): Promise<SharedConfig> {
  const region = await read((profile) => profile['region'], '', NODE_REGION_CONFIG_FILE_OPTIONS);
  const endpoints = await read<Endpoints>((profile, file) => {
    const section = file?.[`services${CONFIG_PREFIX_SEPARATOR}${profile['services']}`];
    const ofService = (service: string) => section?.[`${service.toLowerCase()}${CONFIG_PREFIX_SEPARATOR}endpoint_url`];
    return endpointsBy((service) => set(ofService(service) ?? profile['endpoint_url']));
  }, {});
  const ignores = await read((profile) => profile['ignore_configured_endpoint_urls'], '');
  return { region: set(region), endpoints, ignoresEndpoints: ignores === 'true' };
}

function read<Value>(select: Select<Value>, otherwise: Value, options: Parameters<typeof loadConfig>[1] = {}): Promise<Value> {
  const load = loadConfig<Value>({ environmentVariableSelector: () => undefined, configFileSelector: select, default: otherwise }, options);
  return load().catch(() => otherwise);
}

function set(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}
