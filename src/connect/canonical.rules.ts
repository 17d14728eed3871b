/** JSON in one form, so that documents that mean the same are equal texts. */
import { createHash } from 'node:crypto';

/** Lists count as sets, and a list of one as its value, as in policies and event patterns; the names of objects are sorted. */
export function canonicalJson(value: unknown): string {
  // as JSON has it in lists: nothing is null
  return JSON.stringify(canonical(value)) ?? 'null';
}

/** The SHA-256 of a document, in hex digits. */
export function fingerprintOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => canonicalJson(item)).sort();
    const [only] = items;
    const texts = [...new Set(items)];
    return texts.length === 1 && only !== undefined ? parsed(only) : texts.map(parsed);
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, each]) => [name, canonical(each)]));
}

function parsed(text: string): unknown {
  return JSON.parse(text);
}
