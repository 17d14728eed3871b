/** The README's table of settings, as the schema says it. */
import { parseSettings, settingsSchema } from '../../src/config.ts';

/** Each setting with its default and its description, as Markdown. */
export function settingsMarkdown(): string {
  const parsed = parseSettings({});
  const defaults: Readonly<Record<string, unknown>> = parsed.ok ? parsed.settings : {};
  const rows = Object.entries(settingsSchema.shape).map(
    ([name, schema]) => `| \`${name}\` | ${defaultText(defaults[name])} | ${schema.description ?? ''} |`,
  );
  return ['| setting | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

function defaultText(value: unknown): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return '–';
  if (Array.isArray(value)) return `\`${value.join(',')}\``;
  if (typeof value === 'object' && value !== null && 'host' in value && 'port' in value) return `\`${value.host}:${value.port}\``;
  return `\`${String(value)}\``;
}
