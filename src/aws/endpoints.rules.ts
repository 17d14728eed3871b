/** The services of AWS whose endpoints can be configured, each with its name in the SDK's variables and, in lower case, in profiles. */
const services = { sqs: 'SQS', sns: 'SNS', s3: 'S3', events: 'EVENTBRIDGE', trails: 'CLOUDTRAIL' } as const;

/** An absent endpoint is that of AWS itself. */
export type Endpoints = { readonly [Service in keyof typeof services]?: string | undefined };

/** The endpoint of each service. */
export function endpointsBy(endpointOf: (service: string) => string | undefined): Endpoints {
  return Object.fromEntries(Object.entries(services).map(([service, name]) => [service, endpointOf(name)]));
}
