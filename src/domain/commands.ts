/**
 * Commands of Tally in texts for people: advice, reasons, findings. What makes such a text names a command `tally …` in
 * backticks, or as a line for a shell. How the program must be typed is known only where the text is shown, so it is that
 * place which passes the text through {@link withCommandsTyped}.
 */

/** The first word of a command: in backticks, at the begin of a line, or after another command of a line for a shell. */
const PROGRAM = /(?<=`|^|&& )tally(?= (?<command>[a-z][a-z-]*))/gm;

/** Returns how the program must be typed before the command of that name: `npm run -s tally --`. */
export type TypedProgram = (command: string) => string;

/** Returns the text with each command as it must be typed. */
export function withCommandsTyped(text: string, programFor: TypedProgram): string {
  return text.replaceAll(PROGRAM, (_, command: string) => programFor(command));
}

/** Returns a command for a text: `tally bucket apply photos`. `command` is written as it is; the names that follow are quoted for a shell. */
export function commandOf(command: string, ...names: readonly string[]): string {
  return ['tally', command, ...names.map(shellWord)].join(' ');
}

/** Returns what a finding says to do as a part of a sentence: a command stands in backticks there. */
export function inSentence(fix: string): string {
  return /^tally [a-z]/.test(fix) ? `\`${fix}\`` : fix;
}

/** Returns a text as one word for a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A whole command: in backticks, or as a line for a shell. */
const COMMAND = /`tally [^`]*`|^tally [a-z].*$/gm;

/** Returns the text with no command in it: for a program that acts for a person, which must be given none to run. */
export function withoutCommands(text: string): string {
  return text.replaceAll(COMMAND, 'a command of Tally');
}
