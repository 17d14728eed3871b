/** Commands in texts for people (advice, reasons, findings): written as `tally …` in backticks, or as a line for a shell, with quoted words. */
import { UNPRINTABLE } from './texts.ts';

/** Returns a finding's fix as a part of a sentence: if it is a command, it is put in backticks. */
export function inSentence(fix: string): string {
  return /^tally [a-z]/.test(fix) ? `\`${fix}\`` : fix;
}

/** The backtick ends a command in a text. */
const ESCAPED = new RegExp(`\`|${UNPRINTABLE.source}`, UNPRINTABLE.flags);

/**
 * Returns a text as one word for a shell. Characters that are invisible or could act on a terminal are escaped in the syntax of bash
 * and zsh. So the shell runs exactly the command that is shown, and no key can control the terminal or end the command early.
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

/** Escapes a character byte by byte, because the meaning of `\\u` depends on the locale of the shell. */
function bytesOf(character: string): string {
  return [...new TextEncoder().encode(character)].map((byte) => String.raw`\x${byte.toString(16).padStart(2, '0')}`).join('');
}

/** A whole command: in backticks, or as a line for a shell. */
const COMMAND = /`tally [^`]*`|^tally [a-z].*$/gm;

/** Removes the commands from a text that is for a program acting for a person: such a program must not be given commands to run. */
export function withoutCommands(text: string): string {
  return text.replaceAll(COMMAND, 'a Tally command');
}
