/** How sizes, times, durations and keys are written, and what is copied of an object. */
import { shellWord } from '../../domain/commands.ts';
import { printable } from '../../domain/printable.ts';

const UNITS = ['byte', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** A size as people read it: 1 byte, 1.5 GiB. */
export function sizeText(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(bytes, 1)) / 10)));
  if (step === 0) return countText(bytes, UNITS[0]);
  const value = bytes / 1024 ** step;
  return `${value.toFixed(value < 10 ? 1 : 0)} ${UNITS[step] ?? ''}`;
}

/** A text in which nothing is invisible, and which is not invisible as a whole: a key may be one space. */
export function visibleText(text: string): string {
  return /^\s+$/.test(text) ? text.replaceAll(/\s/g, (space) => `\\u{${space.charCodeAt(0).toString(16)}}`) : printable(text);
}

/** The folder of a key, which may be empty, and its name. The marker of a folder has the folder's name. */
export function keyParts(key: string): readonly [folder: string, name: string] {
  const slash = key.slice(0, -1).lastIndexOf('/') + 1;
  return [key.slice(0, slash), key.slice(slash)];
}

const numbers = new Intl.NumberFormat('en');

/** 12,345. */
export function numberText(value: number): string {
  return numbers.format(value);
}

/** 1 letter, 2 letters. */
export function countText(count: number, name: string): string {
  return `${numberText(count)} ${name}${count === 1 ? '' : 's'}`;
}

/** A time with its zone: 2026-11-21 08:00:00 UTC. */
export function timeText(iso: string): string {
  return `${new Date(iso).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const STEPS = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
] as const;

/** A duration in its largest unit: 3 minutes. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [length, unit] = STEPS.find(([each]) => whole >= each) ?? [1, 'second'];
  const value = Math.floor(whole / length);
  return countText(value, unit);
}

/** How long ago, or in how long. */
export function agoText(iso: string, nowMs: number): string {
  const seconds = (nowMs - new Date(iso).getTime()) / 1_000;
  return seconds >= 0 ? `${durationText(seconds)} ago` : `in ${durationText(-seconds)}`;
}

/** Words of the contract as words: never_compared, bulk-delete. */
export function plainText(name: string): string {
  return name.replaceAll(/[_-]/g, ' ');
}

export interface Copied {
  readonly text: string;
  /** Whether it is a JSON string, because of control characters. */
  readonly isJson: boolean;
}

/** A terminal or a form may act on control characters: a text with them is copied as a JSON string. */
function safe(text: string): Copied {
  return /\p{Cc}/u.test(text) ? { text: JSON.stringify(text), isJson: true } : { text, isJson: false };
}

/** What is copied of an object: its key, its URI, and the line with which the AWS CLI reads it. */
export function copiesOf(bucket: string, key: string): readonly (readonly [name: string, copied: Copied])[] {
  const uri = safe(`s3://${bucket}/${key}`);
  return [
    ['Copy key', safe(key)],
    ['Copy URI', uri],
    ['Copy aws command', uri.isJson ? uri : safe(`aws s3 cp ${shellWord(uri.text)} .`)],
  ];
}
