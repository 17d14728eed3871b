/** docs/reference/cli.md: the help of every command, as the program prints it. */
import { createCliWorld } from '../cli/world.ts';

/** The names in the list of commands that a help shows. */
const COMMAND = /^ {2}(\S+)(?: .*)?$/;

const helps = await helpsOf([]);

/** The page. */
export function cliPage(): string {
  return `# Commands

Every command prints its help with \`--help\`, takes \`--json\` if it prints data, and returns one of the [exit codes](error-codes.md#exit-codes).

Commands talk to a running \`tally serve\` over HTTP, and need no credentials for AWS or the index. They use the first registry available from: \`--registry\`, \`TALLY_REGISTRY_URL\`, the last \`tally login\`, the socket of a process on this machine (never with an API key), \`TALLY_HTTP_ADDRESS\`. If [people log in](../guides/login.md), run \`tally login\` first or set \`TALLY_API_KEY_FILE\`. Otherwise, the registry listens on loopback only; from elsewhere, use a tunnel: \`ssh -L 8080:127.0.0.1:8080 HOST\`, or \`kubectl port-forward\`. Only \`serve\`, \`setup\`, \`iam-policy\` and \`config\` need no registry.

${helps.map(({ name, help }) => `## ${name}\n\n\`\`\`text\n${help.trim()}\n\`\`\`\n`).join('\n')}`;
}

interface CommandHelp {
  readonly name: string;
  readonly help: string;
}

/** The help of a command and of those below it. */
async function helpsOf(command: readonly string[]): Promise<readonly CommandHelp[]> {
  const { stdout } = await createCliWorld().run(...command, '--help');
  const [, list = ''] = stdout.split(/^Commands:\n/m);
  const names = (list.split('\n\n')[0] ?? '').split('\n').flatMap((line) => COMMAND.exec(line)?.[1] ?? []);
  const below: CommandHelp[] = [];
  for (const name of names.filter((each) => each !== 'help')) below.push(...(await helpsOf([...command, name])));
  return [{ name: ['tally', ...command].join(' '), help: stdout }, ...below];
}
