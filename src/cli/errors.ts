/** Turns an error into one report on stderr and one exit code. */
import { CommanderError } from 'commander';
import { pageOfCode } from '../base/doc-pages.ts';
import { FaultError, faults } from '../base/fault.ts';
import { withoutPasswords } from '../base/secrets.ts';
import { RequestError } from '../base/request-error.ts';

/** Exit codes. 64, 69 and 78 are EX_USAGE, EX_UNAVAILABLE and EX_CONFIG of sysexits.h; 130 is 128 + SIGINT, as in shells. */
export const exitCodes = {
  ok: 0,
  failure: 1,
  drift: 2,
  cancelled: 3,
  held: 4,
  someFailed: 7,
  usage: 64,
  unavailable: 69,
  config: 78,
  interrupted: 130,
} as const;

/** What each code means, as the documentation lists them. */
export const exitMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'success; `tally drift BUCKET` found no drift',
  failure:
    'failure: the request was refused, no part of the plan can be applied, `tally doctor BUCKET` found something, or the job that you waited for failed',
  drift: '`tally drift BUCKET` found drift',
  cancelled: 'the job that you waited for was cancelled',
  held: 'the job that you waited for is done, except for deletions that it held back for your decision',
  someFailed: 'at least one of several buckets failed; the table lists each with its code',
  usage: 'wrong usage',
  unavailable: 'something required is unavailable; the message has a code and advice',
  config: 'invalid settings; Tally lists the errors before anything starts',
  interrupted: 'interrupted (Ctrl-C) while waiting; the job continues',
};

/** The settings contain mistakes, and nothing can start with them. Each mistake is printed on a separate line. */
export class SettingsError extends Error {
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super(mistakes.join('; '));
    this.name = 'SettingsError';
    this.mistakes = mistakes;
  }
}

type CommandErrorCode =
  | 'usage'
  /** The user declined it at the terminal. */
  | 'declined'
  /** The address of a catalog or registry cannot be used. */
  | 'address.invalid'
  /** The registry is older than this client needs. */
  | 'platform.too-old'
  /** The stored files are open to others, damaged, or cannot be written. */
  | 'credentials.unusable'
  /** There are no credentials for the registry. */
  | 'login.missing'
  | 'login.failed';

/** What fails on this side of a registry. The message says what happened and what to do, and contains no secret. */
export class CommandError extends Error {
  readonly code: CommandErrorCode;

  constructor(code: CommandErrorCode, message: string) {
    super(message);
    this.name = 'CommandError';
    this.code = code;
  }
}

interface Failure {
  readonly exitCode: number;
  /** For programs: one object, on one line. */
  readonly problem: Readonly<Record<string, unknown>>;
  /** For people: what failed, and advice if there is any; not escaped yet. */
  readonly lines: readonly string[];
}

/** What an error is to people and to programs. */
export function failureOf(error: unknown): Failure {
  if (error instanceof SettingsError) return settingsFailure(error);
  if (error instanceof CommandError) return commandFailure(error);
  if (error instanceof CommanderError) return commandFailure(new CommandError('usage', error.message.replace(/^error: /, '')));
  if (error instanceof RequestError) return requestFailure(error);
  if (error instanceof FaultError && error.code !== 'internal.unexpected') return faultFailure(error);
  const detail = withoutPasswords(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  return {
    exitCode: exitCodes.failure,
    problem: { code: 'internal.unexpected', detail },
    lines: [`unexpected error: ${detail}`],
  };
}

/** The first of its lines. */
export function messageOf(error: unknown): string {
  return failureOf(error).lines[0] ?? '';
}

function settingsFailure({ mistakes, message }: SettingsError): Failure {
  return { exitCode: exitCodes.config, problem: { code: 'settings.invalid', detail: message, mistakes }, lines: mistakes };
}

function commandFailure({ code, message }: CommandError): Failure {
  const exitCode = code === 'usage' || code === 'address.invalid' ? exitCodes.usage : exitCodes.failure;
  return { exitCode, problem: { code, detail: message }, lines: [message] };
}

function requestFailure({ code, message, extra }: RequestError): Failure {
  const exitCode = code === 'request.invalid' ? exitCodes.usage : exitCodes.failure;
  return { exitCode, problem: { code, detail: message, ...extra }, lines: [`${message} (${code})`] };
}

function faultFailure({ code, reason }: FaultError): Failure {
  const { advice } = faults[code];
  return {
    exitCode: exitCodes.unavailable,
    problem: { code, detail: reason, advice },
    lines: [`${reason} (${code})`, advice, `see ${pageOfCode(code)}`],
  };
}
