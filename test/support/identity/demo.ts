/**
 * `npm run demo:identity`: an issuer with a user and an administrator, and a registry that uses it, both on loopback. People
 * choose on a page of the issuer who they are. Nothing of it is for more than trying.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CLIENT_ID, CLIENT_SECRET, startProvider } from './provider.ts';

const people = [
  { sub: 'user', email: 'user@example.com', email_verified: true, groups: ['tally-users'] },
  { sub: 'admin', email: 'admin@example.com', email_verified: true, groups: ['tally-users', 'tally-admins'] },
];
// oidc-provider warns that its keys and its memory are not for production, which this is not
console.warn = () => undefined;
// the variable that the registry names if the port is taken
const address = process.env['TALLY_HTTP_ADDRESS'] ?? '127.0.0.1:8080';
const url = `http://${address}`;

const provider = await startProvider([`${url}/login/callback`], {}, people);
const folder = mkdtempSync(join(tmpdir(), 'tally-demo-'));
const registry = spawn(process.execPath, [new URL('../../../src/tally.js', import.meta.url).pathname, 'serve', '--embedded'], {
  // what it prints for people is about the embedded mode
  stdio: ['ignore', 'ignore', 'inherit'],
  // Ctrl-C reaches all processes of the terminal; the registry takes a second signal for an order to end at once
  detached: true,
  env: {
    ...process.env,
    TALLY_EMBEDDED_DATA: join(folder, 'data'),
    TALLY_HTTP_ADDRESS: address,
    TALLY_OIDC_ISSUER: provider.url,
    TALLY_OIDC_CLIENT_ID: CLIENT_ID,
    TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    TALLY_OIDC_ALLOWED: 'claim:groups=tally-users',
    TALLY_READERS: 'everyone',
    TALLY_OIDC_ADMIN_CLAIM: 'groups=tally-admins',
  },
});

let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!isStopping) registry.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal);
    isStopping = true;
  });
}
process.once('exit', () => registry.kill('SIGKILL'));
registry.once('exit', (code) => {
  rmSync(folder, { recursive: true });
  void provider.close().then(() => process.exit(code ?? 1));
});

/** Whether the registry answers. */
async function answers(): Promise<boolean> {
  return fetch(`${url}/livez`).then(
    ({ ok }) => ok,
    () => false,
  );
}

console.log('The issuer and the registry start. This takes some seconds.');
while (!(await answers())) await delay(200);
console.log(`
The registry is at ${url}. Its issuer, ${provider.url}, asks for no password: you choose who you are.
user@example.com is a user, and admin@example.com is an administrator.

1. In a browser: log in, and use the panel.

     ${url}/panel/

2. In another terminal, in this folder: the first two lines keep your own login and index out of it. "login" opens the
   browser, or prints an address for it.

     export XDG_CONFIG_HOME=${join(folder, 'config')}
     export TALLY_REGISTRY_URL=${url}
     npm run -s tally -- login ${url}
     npm run -s tally -- whoami
     npm run -s tally -- keys create "trying it" --days 1

3. There too, with the secret that was printed: a program that uses the key.

     TALLY_API_KEY=qk_… npm run -s tally -- whoami
     TALLY_API_KEY=qk_… npm run -s tally -- bucket list

4. The same in Python, from this folder, with the secret again.

     PYTHONPATH=clients/python python3 -c 'import tally_sdk as sdk; sdk.login_with_api_key("qk_…", "${url}"); print(sdk.whoami())'

5. What administrators may do: log in again as admin@example.com.

     npm run -s tally -- login ${url}
     npm run -s tally -- admin users list
     npm run -s tally -- admin keys list
     npm run -s tally -- admin audit

Stop it with Ctrl-C. Everything that it stored is then deleted.
`);
