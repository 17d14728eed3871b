import type { Command } from 'commander';
import type { SessionAnswer } from '../registry/contract/login.ts';
import { readsText } from '../registry/contract/reading-texts.ts';
import { printing, withExamples } from './arguments.ts';
import type { Cli, CliDependencies, JsonOption } from './cli.ts';
import { fieldsText } from './output.ts';

type LoginDependencies = Pick<CliDependencies, 'ask' | 'openBrowser' | 'machine' | 'registryOf'>;

/** `tally login|logout|whoami`: a person at a registry. */
export function addLoginCommands(program: Command, cli: Cli, dependencies: LoginDependencies): void {
  addLogin(program, cli, dependencies);
  addLogout(program, cli);
  addWhoami(program, cli, dependencies);
}

function addLogin(program: Command, cli: Cli, { ask, openBrowser, machine }: LoginDependencies): void {
  const login = program
    .command('login')
    .summary('log in to a registry with the browser')
    .description(
      "Logs in with the browser and stores your login on this machine. After that, commands use the catalog's registry unless --registry or TALLY_REGISTRY_URL names another. If this machine has no browser, the command shows an address: open it anywhere, and paste the code.",
    )
    .argument(
      '[catalog]',
      "the catalog's address, for example https://catalog.example.com (default: the registry that --registry or TALLY_REGISTRY_URL names, else the last login's)",
    )
    .option('--no-browser', 'show an address and ask for the code');
  withExamples(login, 'tally login https://catalog.example.com', 'tally login --no-browser').action(
    async (catalog: string | undefined, { browser }: { readonly browser: boolean }) => {
      const ports = {
        ask,
        openBrowser: browser ? openBrowser : undefined,
        say: (text: string) => cli.hint({}, text),
        machine,
        nowMs: cli.nowMs,
      };
      const known = catalog ?? cli.settings().TALLY_REGISTRY_URL;
      await cli.withClient(async (client, signal) => {
        try {
          const { registry_url: registry, email } = await client.login(known, ports, signal);
          cli.hint({}, `You are logged in at ${registry} as ${email}.`);
        } catch (error) {
          if (!signal.aborted) throw error;
          cli.leave({}, 'The login was interrupted, and nothing was stored.');
        }
      });
    },
  );
}

function addLogout(program: Command, cli: Cli): void {
  const logout = program
    .command('logout')
    .summary('log out, and remove the stored credentials')
    .description('Ends the login, and removes all of your credentials stored on this machine, including an API key.');
  withExamples(logout, 'tally logout').action(async () => {
    const trouble = await cli.withClient((client, signal) => client.logout(signal));
    cli.hint({}, 'All credentials were removed from this machine.');
    if (trouble !== undefined) cli.hint({}, `The registry did not end the session, which expires after TALLY_SESSION_DAYS: ${trouble}`);
  });
}

function addWhoami(program: Command, cli: Cli, { registryOf }: LoginDependencies): void {
  const whoami = program
    .command('whoami')
    .summary('show who commands act for at the registry')
    .description('Shows the user, role and scopes that commands use at the registry, and the API key, if any.');
  printing(whoami, 'tally whoami', 'TALLY_API_KEY_FILE=key.txt tally whoami --registry https://tally.example.com').action(
    async (options: JsonOption) => {
      const registry = await registryOf(cli.settings());
      const { readCaller } = await import('./client/registry.ts');
      const caller = await cli.interruptible((signal) => readCaller(registry, signal));
      const answer = { registry: registry.socket ?? registry.url, ...caller };
      cli.print(options, answer, () => callerText(answer));
      if (answer.advice !== undefined) cli.hint(options, answer.advice);
    },
  );
}

function callerText({ registry, user, kind, role, scopes, key, reads }: SessionAnswer & { readonly registry: string }): string {
  const keyFields = key && { key: `${key.name} (${key.fingerprint})`, key_expires: key.expires_at };
  const userFields = { user: user.email_verified === false ? `${user.email} (not verified)` : user.email, user_id: user.id };
  return fieldsText({ ...userFields, role, scopes: scopes.join(', '), reads: readsText(reads), kind, ...keyFields, registry });
}
