/** The role for connections, by STS's own protocol on loopback. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { createAssumedRole } from '../../../src/adapters/aws/credentials.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

const ROLE = 'arn:aws:iam::123456789012:role/tally-connect';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** An STS whose credentials live for 15 minutes; `refuse` makes it deny. */
async function startSts() {
  const clock = createFakeClock();
  const requests: URLSearchParams[] = [];
  const signers: (string | undefined)[] = [];
  const sts = { refuses: false };
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      requests.push(new URLSearchParams(body));
      signers.push(/Credential=([^/]+)/.exec(request.headers.authorization ?? '')?.[1]);
      response.statusCode = sts.refuses ? 403 : 200;
      response.setHeader('content-type', 'text/xml');
      response.end(sts.refuses ? DENIED : answer(requests.length, clock.nowMs() + 900_000));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  stops.push(() => new Promise((resolve) => void server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  const create = (externalId?: string) =>
    createAssumedRole({
      roleArn: ROLE,
      externalId,
      source: { accessKeyId: 'OWN', secretAccessKey: 'own' },
      region: 'us-east-1',
      requestHandler: {},
      endpoint: `http://127.0.0.1:${port}`,
      clock,
    });
  return { clock, requests, signers, sts, create };
}

const DENIED =
  '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User is not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>';

function answer(number: number, endsAtMs: number): string {
  const expiration = new Date(endsAtMs).toISOString();
  return `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ROLE${number}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${expiration}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`;
}

describe('the role for connections', () => {
  it('is assumed with the credentials of the process, for as short as STS allows, with its external ID', async () => {
    const { requests, signers, create } = await startSts();
    expect(await create('tally-7')()).toMatchObject({ accessKeyId: 'ROLE1', sessionToken: 't' });
    expect(Object.fromEntries(requests[0] ?? [])).toMatchObject({
      Action: 'AssumeRole',
      RoleArn: ROLE,
      RoleSessionName: 'tally-connect',
      DurationSeconds: '900',
      ExternalId: 'tally-7',
    });
    expect(signers).toEqual(['OWN']);
    await create()();
    expect(requests[1]?.has('ExternalId')).toBe(false);
  });

  it('is assumed once by callers at the same time, and again two minutes before its credentials end', async () => {
    const { clock, requests, create } = await startSts();
    const credentials = create();
    await Promise.all([credentials(), credentials(), credentials()]);
    expect(requests).toHaveLength(1);
    await clock.advance(779_000);
    expect(await credentials()).toMatchObject({ accessKeyId: 'ROLE1' });
    await clock.advance(1_000);
    expect(await credentials()).toMatchObject({ accessKeyId: 'ROLE2' });
    expect(requests).toHaveLength(2);
  });

  it('that may not be assumed is named in the error, and tried again', async () => {
    const { sts, create } = await startSts();
    const credentials = create();
    sts.refuses = true;
    await expect(credentials()).rejects.toMatchObject({
      name: 'CredentialsProviderError',
      message: expect.stringMatching(/role\/tally-connect cannot be assumed: AccessDenied: .*sts:AssumeRole/),
    });
    sts.refuses = false;
    expect(await credentials()).toMatchObject({ accessKeyId: 'ROLE2' });
  });
});
