/** A registry as a process with a real issuer, and people who use both with Chromium and with programs. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { challengeOf } from '../../../src/domain/identity/tokens.ts';
import { CLIENT_ID, CLIENT_SECRET, startProvider } from '../identity/provider.ts';
import { REDIRECT, VERIFIER } from '../identity/world.ts';
import { runTally, startDaemon, type CommandResult, type Environment } from '../servers/daemon.ts';

const DRIVEN_BROWSER = fileURLToPath(new URL('../identity/driven-browser.ts', import.meta.url));

/** Opens what a program gives to its browser, and does there what a person does. */
type Browse = (address: string) => Promise<void>;

const auditSchema = z.object({
  items: z.array(
    z.object({ eventname: z.string(), sourceipaddress: z.string().optional(), useridentity: z.object({ email: z.string() }) }),
  ),
});

type AuditLine = z.infer<typeof auditSchema>['items'][number];

export async function startBrowserWorld(settings: Environment = {}) {
  const home = await mkdtemp(join(tmpdir(), 'tally-browser-'));
  const data = join(home, 'data');
  let url = '';
  const provider = await startProvider(() => [`${url}/login/callback`]);
  const daemon = await startDaemon(
    {
      TALLY_EMBEDDED_DATA: data,
      TALLY_OIDC_ISSUER: provider.url,
      TALLY_OIDC_CLIENT_ID: CLIENT_ID,
      TALLY_OIDC_CLIENT_SECRET: CLIENT_SECRET,
      TALLY_OIDC_ALLOWED: 'claim:groups=tally-users',
      TALLY_READERS: 'everyone',
      TALLY_OIDC_ADMIN_CLAIM: 'groups=tally-admins',
      ...settings,
    },
    ['serve', '--embedded'],
  );
  url = settings['TALLY_PUBLIC_URL'] ?? daemon.controlUrl;
  await daemon.ready();

  return {
    url,
    home,
    daemon,
    provider,
    /** With which a command opens the store itself. */
    storeEnv: { TALLY_EMBEDDED_DATA: data },
    /** Where a program sends the browser of its user; by default one that does not wait for the answer. */
    authorize: (more: Readonly<Record<string, string>> = { state: 'mine', redirect_uri: REDIRECT, machine: 'laptop' }): string =>
      `${url}/login/authorize?${new URLSearchParams({ code_challenge: challengeOf(VERIFIER), code_challenge_method: 'S256', ...more }).toString()}`,
    /** The events of the audit, the oldest first. */
    async audited(): Promise<readonly AuditLine[]> {
      const { stdout } = await runTally(['admin', 'audit', '--json'], { TALLY_EMBEDDED_DATA: data });
      return auditSchema.parse(JSON.parse(stdout)).items.toReversed();
    },
    /** Runs a command of a person on this machine. `browse`: what its browser is; without it there is none. */
    async tally(args: readonly string[], browse?: Browse, more: Environment = {}): Promise<CommandResult> {
      const browsed = Promise.withResolvers<void>();
      if (browse === undefined) browsed.resolve();
      const driver = createServer((request, response) => {
        void request.toArray().then((parts) => {
          response.end();
          browse?.(parts.join('')).then(browsed.resolve, browsed.reject);
        });
      });
      await new Promise<void>((resolve) => void driver.listen(0, '127.0.0.1', resolve));
      const { port } = driver.address() as AddressInfo;
      const browser = { BROWSER: `${process.execPath} ${DRIVEN_BROWSER} %s`, BROWSER_DRIVER: `http://127.0.0.1:${port}` };
      const env = { HOME: home, XDG_CONFIG_HOME: home, TALLY_EMBEDDED_DATA: join(home, 'none'), ...more };
      try {
        const [ended] = await Promise.all([runTally(args, { ...env, ...(browse !== undefined && browser) }), browsed.promise]);
        return ended;
      } finally {
        driver.closeAllConnections();
        await new Promise((resolve) => void driver.close(resolve));
      }
    },
    async close(): Promise<void> {
      await daemon.stop();
      await provider.close();
      await rm(home, { recursive: true, force: true });
    },
  };
}

export type BrowserWorld = Awaited<ReturnType<typeof startBrowserWorld>>;
