/**
 * `npm run demo:identity`: an issuer with a user and an administrator, and a registry that uses it, both on loopback. People
 * choose on a page of the issuer who they are. Nothing of it is for more than trying.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLIENT_ID, CLIENT_SECRET, startProvider } from './provider.ts';

const people = [
  { sub: 'user', email: 'user@example.com', email_verified: true, groups: ['tally-users'] },
  { sub: 'admin', email: 'admin@example.com', email_verified: true, groups: ['tally-users', 'tally-admins'] },
];
const port = Number(process.env['DEMO_PORT'] ?? '8080');
const publicUrl = `http://127.0.0.1:${port}`;

const provider = await startProvider([`${publicUrl}/login/callback`], {}, people);
const data = mkdtempSync(join(tmpdir(), 'tally-demo-'));
const registry = spawn(process.execPath, [new URL('../../../src/tally.js', import.meta.url).pathname, 'serve', '--embedded'], {
  stdio: 'inherit',
  env: {
    ...process.env,
    TALLY_EMBEDDED_DATA: data,
    TALLY_HTTP_ADDRESS: `127.0.0.1:${port}`,
    TALLY_OIDC_ISSUER: provider.url,
    TALLY_OIDC_CLIENT_ID: CLIENT_ID,
    TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    TALLY_OIDC_ALLOWED: 'claim:groups=tally-users',
    TALLY_OIDC_ADMIN_CLAIM: 'groups=tally-admins',
  },
});
console.log(`
The issuer is at ${provider.url}. Open the panel in a browser, log in, and choose who you are:

  ${publicUrl}/panel/

Stop with Ctrl-C.
`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => registry.kill(signal));
registry.once('exit', (code) => {
  rmSync(data, { recursive: true, force: true });
  void provider.close().then(() => process.exit(code ?? 1));
});
