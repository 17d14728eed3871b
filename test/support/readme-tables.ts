/** The README's tables, as the code says them. */
import { metricTable } from '../../src/adapters/telemetry/metrics.ts';
import { settingsSchema, type Settings } from '../../src/settings/settings.ts';
import { tracesSchema } from '../../src/settings/traces.ts';
import { faults } from '../../src/domain/fault.ts';

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

/** Each of OpenTelemetry's variables that is honoured, with its default and its description, as Markdown. */
export function tracesMarkdown(): string {
  const defaults = new Map<string, string | number | undefined>(Object.entries(tracesSchema.parse({})));
  const rows = Object.entries(tracesSchema.shape).map(([name, schema]) => {
    const value = defaults.get(name);
    return `| \`${name}\` | ${value === undefined ? '–' : `\`${value}\``} | ${schema.description ?? ''} |`;
  });
  return ['| variable | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

/** Each metric with its type, labels, unit, meaning and alert, as Markdown. */
export function metricsMarkdown(): string {
  const rows = Object.entries(metricTable).map(([name, { type, labels, unit, help, alert }]) => {
    const labelText = Object.entries(labels)
      .map(([label, values]) => `${label}${describeValues(values)}`)
      .join('; ');
    return `| \`${name}\` | ${type} | ${labelText === '' ? '–' : labelText} | ${unit} | ${help} | ${alert === '' ? '–' : alert} |`;
  });
  return ['| series | type | labels | unit | meaning | alert worth having |', '|---|---|---|---|---|---|', ...rows].join('\n');
}

/** Fault codes are listed elsewhere, and too many for a cell. */
function describeValues(values: readonly string[]): string {
  if (values.length === 0) return '';
  const own = values.filter((value) => !(value in faults));
  return `: ${(own.length < values.length ? [...own, 'a fault code'] : own).join(', ')}`;
}
