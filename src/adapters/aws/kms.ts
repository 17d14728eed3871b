/**
 * Two reads of KMS, in its JSON protocol. The SDK's client for KMS is left out, because nothing else of it is needed. The
 * SDK's switches for FIPS and dual-stack endpoints are not known here: where they are needed, AWS_ENDPOINT_URL_KMS names one.
 * https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyPolicy.html
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { z } from 'zod';
import { createRequestSigner } from './request-signer.ts';

/** Returns the answer as parsed JSON. What KMS refuses is an error with the name that KMS gives it. */
export type AskKms = (
  region: string,
  operation: 'DescribeKey' | 'GetKeyPolicy',
  input: Readonly<Record<string, string>>,
  signal?: AbortSignal,
) => Promise<unknown>;

interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

interface Options {
  /** Absent: AWS itself. */
  readonly endpoint: string | undefined;
  readonly credentials: Credentials | (() => Promise<Credentials>);
  readonly timeoutMs: number;
  readonly proxyEnv: Readonly<Record<string, string>> | undefined;
}

/** The policy of a key has 32 KiB at most, and JSON may double it. */
const ANSWER_BYTES_MAX = 262_144;

const errorSchema = z.object({ __type: z.string().optional(), message: z.string().optional(), Message: z.string().optional() });

/** Creates the function. Each request has its own connection: there are a few in an hour. */
export function createAskKms({ endpoint, credentials, timeoutMs, proxyEnv }: Options): AskKms {
  return async function askKms(region, operation, input, signal) {
    const url = new URL(endpoint ?? `https://kms.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`);
    const signer = createRequestSigner({
      service: 'kms',
      region,
      credentials: typeof credentials === 'function' ? credentials : async () => credentials,
    });
    const signed = await signer.sign({
      method: 'POST',
      path: '/',
      headers: { host: url.host, 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `TrentService.${operation}` },
      body: JSON.stringify(input),
    });
    const limit = AbortSignal.timeout(timeoutMs);
    const answer = await send(url, signed, { proxyEnv, signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) });
    const body = jsonOf(await textOf(answer));
    if (answer.statusCode === 200) return body;
    throw refusal(answer.statusCode, body);
  };
}

function send(
  url: URL,
  { headers, body }: { readonly headers: Record<string, string>; readonly body: string },
  { proxyEnv, signal }: Pick<Options, 'proxyEnv'> & { readonly signal: AbortSignal },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, signal };
    const request =
      url.protocol === 'http:'
        ? httpRequest(url, { ...options, agent: new HttpAgent({ proxyEnv }) }, resolve)
        : httpsRequest(url, { ...options, agent: new HttpsAgent({ proxyEnv }) }, resolve);
    request.once('error', reject);
    request.end(body);
  });
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    const buffer = Buffer.from(chunk);
    bytes += buffer.byteLength;
    if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer of KMS is too long');
    chunks.push(buffer);
  }
  return Buffer.concat(chunks).toString();
}

/** The names have a prefix in some answers. */
function refusal(status: number | undefined, body: unknown): Error {
  const parsed = errorSchema.safeParse(body);
  const { __type: type = '', message, Message } = parsed.success ? parsed.data : {};
  const error = new Error(message ?? Message ?? `KMS answered with the status ${String(status)}`);
  return Object.assign(error, { name: type === '' ? 'KmsError' : type.replace(/^.*#/, ''), $metadata: { httpStatusCode: status } });
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
