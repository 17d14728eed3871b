/**
 * The faults of the control plane: what callers without a credential do to it, each beside honest callers who must be answered,
 * directly and behind a reverse proxy, which sends the requests of all over connections that it keeps.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { challengeOf } from '../../src/identity/tokens.rules.ts';
import { inTurns } from '../support/breadth.ts';
import { get } from '../support/identity/browser.ts';
import { bearer, jsonOf, startHttpWorld, type HttpWorld } from '../support/identity/http-world.ts';
import { REDIRECT, VERIFIER } from '../support/identity/world.ts';
import { until } from '../support/servers/aws.ts';
import { startFront, type Front } from '../support/servers/front.ts';

/** More connections than a listener keeps. */
const MANY = 300;
const json = { 'content-type': 'application/json' };
const authorizePath = `/login/authorize?${new URLSearchParams({
  code_challenge: challengeOf(VERIFIER),
  code_challenge_method: 'S256',
  state: 'mine',
  redirect_uri: REDIRECT,
}).toString()}`;

let world: HttpWorld;
let front: Front;
let sockets: Socket[];

beforeEach(async () => {
  sockets = [];
  front = await startFront();
  world = await startHttpWorld({ trustedProxies: ['127.0.0.1/32'] });
  front.leadsTo(world.url);
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await front.close();
  await world.close();
});

/** A connection that sends a text and then nothing. `reads`: whether it reads what it is sent. */
async function say(url: string, text: string, reads = true): Promise<Socket> {
  const { port } = new URL(url);
  const socket = connect({ host: '127.0.0.1', port: Number(port) });
  sockets.push(socket);
  socket.on('error', () => undefined);
  if (reads) socket.resume();
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

const host = (url: string) => `Host: ${new URL(url).host}\r\n`;
const slowBody = (url: string) =>
  `POST /login/token HTTP/1.1\r\n${host(url)}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
const endlessBody = (url: string) =>
  `POST /login/token HTTP/1.1\r\n${host(url)}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`;

/** What they do, to the address of the registry or of its proxy. */
const troubles: readonly (readonly [string, (url: string) => Promise<unknown>])[] = [
  ['send headers and never the rest of a body', (url) => say(url, slowBody(url))],
  ['send a body without an end', (url) => say(url, endlessBody(url))],
  ['send a body without a credential to an operation that needs one', (url) => say(url, slowBody(url).replace('/login/token', '/v1/jobs'))],
  ['never end their headers', (url) => say(url, `GET /v1/session HTTP/1.1\r\n${host(url)}X-Slow: `)],
  ['begin logins', async (url) => expect((await get(`${url}${authorizePath}`)).status).toBe(302)],
  ['do not read what they ask for', (url) => say(url, `GET /openapi.json HTTP/1.1\r\n${host(url)}\r\n`, false)],
  ['do not read many small answers', (url) => say(url, `GET /livez HTTP/1.1\r\n${host(url)}\r\n`.repeat(5), false)],
];

/** How the honest caller comes: from this address, or through the proxy. */
const ways: readonly (readonly [string, string | undefined])[] = [
  ['behind a reverse proxy', undefined],
  ['directly', '127.0.0.1'],
  ['directly, from another address', '127.0.0.2'],
];
// a proxy reads what is asked through it, so it is not what its callers leave unread that holds a connection
const isUnread = ([name]: (typeof troubles)[number]): boolean => name.startsWith('do not read');
const cases = [
  ...inTurns(
    troubles.filter((trouble) => !isUnread(trouble)),
    ways,
  ),
  ...troubles.filter(isUnread).map((trouble) => [trouble, ['directly', '127.0.0.1']] as const),
].map(([[what, trouble], [way, from]]) => ({ what, trouble, way, from }));

it.each(cases)('Fix: an honest caller $way is answered beside 300 who $what', async ({ trouble, from }) => {
  const sent = from === undefined ? {} : { from };
  const token = await world.tokenOf('user');
  const url = from === undefined ? front.url : world.url;
  const session = () => get(`${url}/v1/session`, { ...sent, headers: bearer(token) });
  expect((await session()).status).toBe(200);
  for (let each = 0; each < MANY; each += 1) {
    await trouble(url);
    if (each % 100 === 0) expect((await session()).status).toBe(200);
  }
  expect((await session()).status).toBe(200);
  const begun = await get(`${url}${authorizePath}`, sent);
  expect([begun.status, begun.location]).toEqual([302, expect.stringContaining('https://id.example.com/')]);
  const body = JSON.stringify({ grant_type: 'authorization_code', code: 'x'.repeat(44), code_verifier: 'v'.repeat(43) });
  const redeemed = await get(`${url}/login/token`, { ...sent, method: 'POST', headers: json, body });
  expect(jsonOf(redeemed)).toMatchObject({ status: 400, code: 'login.invalid-grant' });
  expect((await session()).status).toBe(200);
});

describe('the room of a listener', () => {
  it('is taken from the network that has most of it', async () => {
    const few = connect({ host: '127.0.0.1', port: world.port, localAddress: '127.0.0.3' });
    sockets.push(few);
    few.on('error', () => undefined).resume();
    await once(few, 'connect');
    for (let each = 0; each < MANY; each += 1) await say(world.url, slowBody(world.url));
    await until('the oldest are closed', () => sockets.filter(({ closed }) => closed).length >= 40);
    expect(few.closed).toBe(false);
  });

  it('keeps a connection that a proxy will use again, which has just brought a request', async () => {
    const kept = connect({ host: '127.0.0.1', port: world.port });
    sockets.push(kept);
    let read = '';
    kept
      .on('error', () => undefined)
      .setEncoding('utf8')
      .on('data', (text: string) => (read += text));
    await once(kept, 'connect');
    for (let each = 0; each < 200; each += 1) await say(world.url, slowBody(world.url));
    kept.write(`GET /livez HTTP/1.1\r\n${host(world.url)}\r\n`);
    await until('it is answered', () => read.includes('"ok"'));
    for (let each = 0; each < 200; each += 1) await say(world.url, slowBody(world.url));
    read = '';
    kept.write(`GET /livez HTTP/1.1\r\n${host(world.url)}\r\n`);
    await until('it is answered again', () => read.includes('"ok"'));
  });
});
