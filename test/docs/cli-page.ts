/** docs/reference/cli.md: the help of every command, as the program prints it. */
import { createCliWorld } from '../cli/world.ts';

/** The names in the list of commands that a help shows. */
const COMMAND = /^ {2}(\S+)(?: .*)?$/;

const helps = await helpsOf([]);

/** The page. */
export function cliPage(): string {
  return `# Commands

Every command prints this help with \`--help\`, takes \`--json\` where it prints data, and ends with one of the [exit codes](error-codes.md#exit-codes).

With \`--registry URL\`, or with \`TALLY_REGISTRY_URL\`, commands ask the control plane of a running \`tally serve\` instead of opening the index and the queues themselves. They need no credentials of AWS and of the index then, and they print and end exactly as they would otherwise. Where [people log in](../guides/login.md), log in first (\`tally login\`), or set \`TALLY_API_KEY_FILE\`. Where they do not, the control plane listens on loopback only; from elsewhere, use a tunnel: \`ssh -L 8080:127.0.0.1:8080 HOST\`, or \`kubectl port-forward\`.

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
