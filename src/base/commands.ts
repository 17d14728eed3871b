/** Commands in texts for people (advice, reasons, findings): written as `tally …` in backticks, or as a line for a shell, with quoted words. */
import { UNPRINTABLE } from './printable.ts';

/** Returns what a finding says to do as a part of a sentence: a command stands in backticks there. */
export function inSentence(fix: string): string {
  return /^tally [a-z]/.test(fix) ? `\`${fix}\`` : fix;
}

/** The backtick ends a command in a text. */
const ESCAPED = new RegExp(`\`|${UNPRINTABLE.source}`, UNPRINTABLE.flags);

/**
 * Returns a text as one word for a shell. What is invisible, or could act on a terminal, is escaped as bash and zsh read it: so the
 * command runs as it is shown, and no key writes to a terminal or ends the command in its text.
 */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (text.search(ESCAPED) === -1) return `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return `$'${text.replaceAll(/[\\']/g, String.raw`\$&`).replaceAll(ESCAPED, bytesOf)}'`;
}

/** Returns the words of a command, each quoted for a shell. */
export function shellWords(...words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

/** The bytes of a character, since what `\\u` means depends on the locale of the shell. */
function bytesOf(character: string): string {
  return [...new TextEncoder().encode(character)].map((byte) => String.raw`\x${byte.toString(16).padStart(2, '0')}`).join('');
}

/** A whole command: in backticks, or as a line for a shell. */
const COMMAND = /`tally [^`]*`|^tally [a-z].*$/gm;

/** Returns the text with no command in it: for a program that acts for a person, which must be given none to run. */
export function withoutCommands(text: string): string {
  return text.replaceAll(COMMAND, 'a command of Tally');
}
