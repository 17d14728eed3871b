import type { Command } from 'commander';
import { secretSettings } from '../settings/identity.ts';
import { settingsSchema, type Settings, clientSecrets } from '../settings/settings.ts';
import { indexUrlText } from '../settings/urls.ts';
import { withoutPasswords } from '../base/secrets.ts';
import { printable } from '../base/texts.ts';
import { withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';

type Shown = string | number | boolean | readonly string[] | null;

/** `tally config`: the effective settings, passwords masked. */
export function addConfigCommand(program: Command, cli: Cli): void {
  const config = program
    .command('config')
    .summary('show the effective settings')
    .description('Shows each setting with its effective value and its meaning. Masks passwords and keys.');
  withExamples(config.option('--json', 'print JSON'), 'tally config', 'TALLY_LOG_LEVEL=debug tally config --json').action(
    (options: JsonOption) => {
      const shown = shownSettings(cli.settings());
      cli.print(options, Object.fromEntries(shown), () => shown.map(([name, value]) => settingText(name, value)).join('\n'));
    },
  );
}

function shownSettings(settings: Settings): readonly (readonly [name: string, value: Shown])[] {
  const values = new Map(Object.entries(settings));
  return Object.keys(settingsSchema.shape).map((name) => {
    const value = values.get(name);
    return [name, value !== undefined && (clientSecrets.has(name) || secretSettings.has(name)) ? '***' : shownValue(value)] as const;
  });
}

function shownValue(value: Settings[keyof Settings]): Shown {
  if (value === undefined) return null;
  if (typeof value === 'string') return withoutPasswords(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if ('host' in value) return `${value.host.includes(':') ? `[${value.host}]` : value.host}:${value.port}`;
  if ('product' in value) return withoutPasswords(indexUrlText(value));
  return value.map(withoutPasswords);
}

function settingText(name: string, value: Shown): string {
  const schema = new Map(Object.entries(settingsSchema.shape)).get(name);
  return `# ${schema?.description ?? ''}\n${name}=${printable(String(value ?? ''))}`;
}
