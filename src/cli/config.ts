import type { Command } from 'commander';
import { settingsSchema, type Settings } from '../config.ts';
import type { Cli, JsonOption } from './cli.ts';

/** `tally config [--json]`: the effective settings, secrets masked. */
export function addConfigCommand(program: Command, cli: Cli): void {
  program
    .command('config')
    .description('show the effective settings, each with its meaning; secrets are masked')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally config --json')
    .action((options: JsonOption) => {
      const shown = shownSettings(cli.settings());
      cli.print(options, Object.fromEntries(shown.map(({ name, value }) => [name, value ?? null])), () =>
        shown.map(({ name, value, description }) => `# ${description}\n${name}=${textOf(value)}`).join('\n'),
      );
    });
}

type Shown = string | number | boolean | readonly string[] | undefined;

function shownSettings(settings: Settings): readonly { readonly name: string; readonly value: Shown; readonly description: string }[] {
  const values: Readonly<Record<string, unknown>> = settings;
  return Object.entries(settingsSchema.shape).map(([name, schema]) => ({
    name,
    value: shownValue(values[name]),
    description: schema.description ?? '',
  }));
}

function shownValue(value: unknown): Shown {
  if (typeof value === 'string') return withoutPasswords(value);
  if (Array.isArray(value)) return value.map((each) => withoutPasswords(String(each)));
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined) return value;
  return addressText(value);
}

function addressText(value: unknown): string {
  const { host, port } = Object(value);
  return String(host).includes(':') ? `[${String(host)}]:${String(port)}` : `${String(host)}:${String(port)}`;
}

function textOf(value: Shown): string {
  if (value === undefined) return '';
  return Array.isArray(value) ? value.join(',') : String(value);
}

/** Up to the last `@`: a password that should have been escaped may hold any character. */
function withoutPasswords(text: string): string {
  return text.replaceAll(/(https?:\/\/[^:@/\s,]*):[^\s]*?@(?=[^@\s,]*(,https?:\/\/|$))/g, '$1:***@');
}
