/**
 * Checks AWS signatures (version 4) as a service does: recomputed from what arrived, by the rules of
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import { createHash, createHmac } from 'node:crypto';
import type { ProxiedRequest } from './servers/opensearch.ts';

export interface Signer {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly region: string;
  readonly service: string;
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
/** A service refuses what was signed longer ago. */
const AGE_MAX_MS = 300_000;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** Why a service would refuse the request; undefined when it is as the signer signed it. */
export function signatureMistake(request: ProxiedRequest, signer: Signer): string | undefined {
  const header = (name: string): string => String(request.headers[name] ?? '');
  const [, accessKeyId, day = '', region, service, signedHeaders = '', signature] = AUTHORIZATION.exec(header('authorization')) ?? [];
  if (signature === undefined) return 'not signed';
  const { accessKeyId: id, region: expectedRegion, service: expectedService } = signer;
  if (accessKeyId !== id) return `signed by ${accessKeyId}`;
  if (region !== expectedRegion || service !== expectedService) return `signed for ${service} in ${region}`;
  if (header('x-amz-security-token') !== signer.sessionToken) return 'another session';
  const unsigned = ['host', ...Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'))].filter(
    (name) => !signedHeaders.split(';').includes(name),
  );
  if (unsigned.length > 0) return `not signed: ${unsigned.join()}`;
  if (header('x-amz-content-sha256') !== sha256(request.body)) return 'another body';
  const [year, month, date, hour, minute, second] = header('x-amz-date').match(/^\d{4}|\d\d/g) ?? [];
  const signedAtMs = Date.parse(`${year}-${month}-${date}T${hour}:${minute}:${second}Z`);
  if (!(Math.abs(Date.now() - signedAtMs) < AGE_MAX_MS) || !header('x-amz-date').startsWith(day)) return 'too old';
  return signatureOf(request, { ...signer, signedHeaders }) === signature ? undefined : 'another signature';
}

function signatureOf({ method, path, headers, body }: ProxiedRequest, signer: Signer & { readonly signedHeaders: string }): string {
  const [pathname = '', search = ''] = path.split(/\?(.*)/s, 2);
  const canonicalHeaders = signer.signedHeaders
    .split(';')
    .map((name) => `${name}:${String(headers[name]).trim().replaceAll(/ +/g, ' ')}\n`);
  const canonical = [
    method,
    // what arrived encoded is encoded once more, but not by S3
    signer.service === 's3' ? pathname : pathname.split('/').map(encode).join('/'),
    search.split('&').filter(Boolean).map(canonicalParameter).sort().join('&'),
    canonicalHeaders.join(''),
    signer.signedHeaders,
    sha256(body),
  ].join('\n');
  const dateTime = String(headers['x-amz-date']);
  const scope = [dateTime.slice(0, 8), signer.region, signer.service, 'aws4_request'];
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${signer.secretAccessKey}`);
  return hmac(key, ['AWS4-HMAC-SHA256', dateTime, scope.join('/'), sha256(canonical)].join('\n')).toString('hex');
}

function canonicalParameter(text: string): string {
  const [name = '', value = ''] = text.split(/=(.*)/s, 2);
  return `${encode(decodeURIComponent(name))}=${encode(decodeURIComponent(value))}`;
}

/** All but A-Z a-z 0-9 - . _ ~ */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}
