/** The role for connections, by STS's own protocol on loopback. */
import { describe, expect, it } from 'vitest';
import { createAssumedRole } from '../../../src/adapters/aws/credentials.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { startScripted } from '../../support/servers/scripted.ts';

const ROLE = 'arn:aws:iam::123456789012:role/tally-connect';

/** An STS whose credentials live for 15 minutes, until it refuses. */
async function startSts() {
  const clock = createFakeClock();
  const sts = { refuses: false };
  const { url, asked } = await startScripted(() => ({
    status: sts.refuses ? 403 : 200,
    headers: { 'content-type': 'text/xml' },
    body: sts.refuses ? DENIED : answer(asked.length, clock.nowMs() + 900_000),
  }));
  const create = (externalId?: string) =>
    createAssumedRole({
      roleArn: ROLE,
      externalId,
      source: { accessKeyId: 'OWN', secretAccessKey: 'own' },
      region: 'us-east-1',
      requestHandler: {},
      endpoint: url,
      clock,
    });
  return { clock, asked, sts, create };
}

const DENIED =
  '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User is not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>';

function answer(number: number, endsAtMs: number): string {
  const expiration = new Date(endsAtMs).toISOString();
  return `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ROLE${number}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${expiration}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`;
}

describe('the role for connections', () => {
  it('is assumed with the credentials of the process, for as short as STS allows, with its external ID', async () => {
    const { asked, create } = await startSts();
    expect(await create('tally-7')()).toMatchObject({ accessKeyId: 'ROLE1', sessionToken: 't' });
    expect(Object.fromEntries(new URLSearchParams(asked[0]?.body))).toMatchObject({
      Action: 'AssumeRole',
      RoleArn: ROLE,
      RoleSessionName: 'tally-connect',
      DurationSeconds: '900',
      ExternalId: 'tally-7',
    });
    expect(asked[0]?.headers.authorization).toContain('Credential=OWN/');
    await create()();
    expect(asked[1]?.body).not.toContain('ExternalId');
  });

  it('is assumed once by callers at the same time, and again two minutes before its credentials end', async () => {
    const { clock, asked, create } = await startSts();
    const credentials = create();
    await Promise.all([credentials(), credentials(), credentials()]);
    expect(asked).toHaveLength(1);
    await clock.advance(779_000);
    expect(await credentials()).toMatchObject({ accessKeyId: 'ROLE1' });
    await clock.advance(1_000);
    expect(await credentials()).toMatchObject({ accessKeyId: 'ROLE2' });
    expect(asked).toHaveLength(2);
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
