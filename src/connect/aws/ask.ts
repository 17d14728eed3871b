/** Sends requests that read or make parts of a connection, and maps those that fail to errors. */
import type { GetCallerIdentityCommandOutput } from '@aws-sdk/client-sts';
import type { Client, Command, SmithyResolvedConfiguration } from '@smithy/core/client';
import { FaultError } from '../../base/fault.ts';
import { printable } from '../../base/texts.ts';
import { RequestError } from '../../base/request-error.ts';
import { z } from 'zod';
import type { AwsClients } from '../../aws/clients.ts';
import { errorText, isCredentialsError, isDenied, isMissing } from '../../aws/faults.ts';

/** The most characters of AWS's text in a reason. */
const TEXT_MAX = 500;

/** The clients of a service: those of `once` are for writes, and send each request once. */
export type ClientsOf<Names extends keyof AwsClients['once']> = Pick<AwsClients, Names> & {
  readonly once: Pick<AwsClients['once'], Names>;
};

interface RequestOptions {
  readonly abortSignal?: AbortSignal;
}

type Answered = Pick<GetCallerIdentityCommandOutput, '$metadata'>;
type Config = SmithyResolvedConfiguration<RequestOptions> & { readonly serviceId: string };

/**
 * Sends a request about something. The permission that it needs has its name: `sns:CreateTopic`.
 *
 * Every answer of AWS has a request ID (https://docs.aws.amazon.com/AmazonS3/latest/userguide/get-request-ids.html); a sign-in page's has
 * none. The SDK would read the page's 200 as an empty result, its 404 as a missing resource and its 403 as a missing permission. Other
 * implementations of SQS send no ID either.
 */
export async function ask<AnyInput extends object, AnyOutput extends Answered, Input extends AnyInput, Output extends AnyOutput>(
  client: Client<RequestOptions, AnyInput, AnyOutput, Config>,
  command: Command<Input, Output, Config, AnyInput, AnyOutput>,
  about: string,
  signal?: AbortSignal,
): Promise<Output> {
  const isForeign = ({ httpStatusCode, requestId }: Metadata): boolean =>
    httpStatusCode !== undefined && requestId === undefined && client.config.serviceId !== 'SQS';
  let metadata: Metadata;
  try {
    const answer = await client.send(command, signal === undefined ? {} : { abortSignal: signal });
    metadata = answer.$metadata;
    if (!isForeign(metadata)) return answer;
  } catch (error) {
    signal?.throwIfAborted();
    metadata = metadataOf(error);
    if (!isForeign(metadata)) throw isMissing(error) ? error : refusalOf(actionOf(client.config, command), about, error);
  }
  const what = `${operationOf(command)} ${about}`.trimEnd();
  const reason = `an HTTP ${metadata.httpStatusCode} without a request ID does not come from AWS: check the proxy and the endpoint`;
  throw new FaultError('connect.unavailable', `${what}: ${reason}`);
}

/** The names of services in permissions, where those are not the SDK's. */
const SERVICES: Readonly<Record<string, string>> = { EventBridge: 'events' };

function actionOf({ serviceId }: Config, command: object): Action {
  return `${SERVICES[serviceId] ?? serviceId.toLowerCase()}:${operationOf(command)}`;
}

function operationOf(command: object): string {
  return command.constructor.name.replace(/Command$/, '');
}

/** A permission. */
export type Action = `${string}:${string}`;

/** The request's answer; `absent` if its subject does not exist. */
export async function orAbsent<Answer>(answer: Promise<Answer>): Promise<Answer | 'absent'> {
  try {
    return await answer;
  } catch (error) {
    if (isMissing(error)) return 'absent';
    throw error;
  }
}

/** The error of a failed request. */
export function refusalOf(action: Action, about: string, error: unknown): Error {
  if (error instanceof RequestError || error instanceof FaultError) return error;
  const what = `${action.slice(action.indexOf(':') + 1)} ${about}`.trimEnd();
  const reason = printable(errorText(error), TEXT_MAX);
  // before the status, because AWS also answers 403 for expired credentials
  if (isCredentialsError(error)) return new FaultError('connect.credentials', `${what}: ${reason}`, { cause: error });
  if (isDenied(error) || metadataOf(error).httpStatusCode === 403)
    return new RequestError('connect.denied', `${what} is denied: the permission ${action} is missing (${reason})`, { action });
  return new FaultError('connect.unavailable', `${what}: ${reason}`, { cause: error });
}

const failedSchema = z.object({ $metadata: z.object({ httpStatusCode: z.number().optional(), requestId: z.string().optional() }) });
type Metadata = z.infer<typeof failedSchema>['$metadata'];

function metadataOf(error: unknown): Metadata {
  return failedSchema.safeParse(error).data?.$metadata ?? {};
}
