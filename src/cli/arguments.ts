/** Arguments that several commands share. */
import { InvalidArgumentError, Option } from 'commander';

/** `--limit N`, 1 to 1,000. */
export function limitOption(): Option {
  return new Option('--limit <n>', 'at most this many, 1 to 1000 (default: 100)').argParser((text) => {
    if (!/^\d{1,4}$/.test(text) || Number(text) < 1 || Number(text) > 1_000) {
      throw new InvalidArgumentError('It must be a whole number from 1 to 1000.');
    }
    return Number(text);
  });
}

/** `--cursor CURSOR`, where the page before ended. */
export function cursorOption(): Option {
  return new Option('--cursor <cursor>', 'go on where the page before ended');
}

export interface PageOptions {
  readonly limit?: number;
  readonly cursor?: string;
}

/** The page that the options ask for. */
export function pageOf({ limit, cursor }: PageOptions): PageOptions {
  return { ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) };
}
