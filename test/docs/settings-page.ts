/** The page docs/reference/settings.md, written from the schema of the settings. */
import { settingGroups, settingsSchema, type Settings } from '../../src/settings/settings.ts';
import { indexUrlText } from '../../src/settings/urls.ts';

const INTRODUCTION = `# Settings

<!-- written from src/settings by \`npm run docs\`; do not edit -->

Settings are environment variables. \`tally config\` prints the effective values with their meanings and masks passwords.

An empty variable is treated as unset. If a value is invalid, or a variable that begins with \`TALLY_\` is unknown, Tally reports all such errors together and exits with code 78. Settings that don't fit together are reported once each value is valid. Tally ignores variables that Kubernetes sets for a service named \`tally\`.

The AWS region, credentials and endpoints come from the AWS SDK's own variables and files, and proxies from \`HTTPS_PROXY\`, \`HTTP_PROXY\` and \`NO_PROXY\`: see [endpoints and proxies](endpoints-proxies.md).
`;

/** The text of docs/reference/settings.md: every setting with its default and its description, by subject. */
export function settingsPage(): string {
  const defaults = new Map<string, Settings[keyof Settings]>(Object.entries(settingsSchema.parse({})));
  const groups = Object.entries(settingGroups).map(([title, settings]) => {
    const rows = Object.entries(settings).map(
      ([name, { description = '' }]) => `| \`${name}\` | ${defaultText(defaults.get(name))} | ${description} |`,
    );
    return ['', `## ${title}`, '', '| setting | default | meaning |', '|---|---|---|', ...rows, ''].join('\n');
  });
  return INTRODUCTION + groups.join('');
}

function defaultText(value: Settings[keyof Settings]): string {
  if (value === undefined) return '–';
  if (typeof value !== 'object') return `\`${value}\``;
  if ('host' in value) return `\`${value.host}:${value.port}\``;
  if ('product' in value) return `\`${indexUrlText(value)}\``;
  return value.length === 0 ? '–' : `\`${value.join(',')}\``;
}
