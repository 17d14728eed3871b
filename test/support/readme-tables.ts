/** The README's table of settings, as the schema says it. */
import { settingsSchema, type Settings } from '../../src/config.ts';

/** Each setting with its default and its description, as Markdown. */
export function settingsMarkdown(): string {
  const defaults = new Map<string, Settings[keyof Settings]>(Object.entries(settingsSchema.parse({})));
  const rows = Object.entries(settingsSchema.shape).map(
    ([name, schema]) => `| \`${name}\` | ${defaultText(defaults.get(name))} | ${schema.description ?? ''} |`,
  );
  return ['| setting | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

function defaultText(value: Settings[keyof Settings]): string {
  if (value === undefined) return '–';
  if (typeof value !== 'object') return `\`${value}\``;
  if ('host' in value) return `\`${value.host}:${value.port}\``;
  return value.length === 0 ? '–' : `\`${value.join(',')}\``;
}
