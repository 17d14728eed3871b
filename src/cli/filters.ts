/** The options that narrow a search, and the parameters that they become. */
import { defined } from '../domain/defined.ts';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { sizeOf } from '../domain/search/values.ts';

export interface FilterOptions {
  readonly query?: string;
  readonly tz?: string;
  readonly key?: string;
  readonly contains?: string;
  readonly match?: string;
  readonly extension?: string;
  readonly sizeMin?: number;
  readonly sizeMax?: number;
  readonly modifiedAfter?: string;
  readonly modifiedBefore?: string;
  readonly contentType?: string;
  readonly storageClass?: string;
  readonly etag?: string;
  readonly tag?: string[];
  readonly meta?: string[];
}

/** Adds the options to a command. */
export function addFilterOptions(command: Command): Command {
  return command
    .option('--query <text>', 'all filters in one text: \'ext:pdf size>1G modified<7d -"draft"\'')
    .option('--tz <zone>', 'the time zone of dates in --query (default: UTC)')
    .option('--key <key>', 'only the object with this key')
    .option('--contains <text>', 'only keys that contain this, in any case')
    .option('--match <pattern>', "only keys that this pattern describes: '*.jpg'")
    .option('--extension <extension>', 'only keys with this extension')
    .addOption(sizeOption('--size-min <size>', 'only objects of at least this size: 64K, 1.5G'))
    .addOption(sizeOption('--size-max <size>', 'only objects of at most this size'))
    .option('--modified-after <time>', 'only objects that were modified since')
    .option('--modified-before <time>', 'only objects that were modified before')
    .option('--content-type <type>', "only this content type, or 'image/*'")
    .option('--storage-class <class>', 'only this storage class')
    .option('--etag <etag>', 'only this etag')
    .option('--tag <name=value>', 'only objects with this tag; repeatable', collected)
    .option('--meta <name=value>', 'only objects with this user metadata; repeatable', collected);
}

function sizeOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text) => {
    const bytes = sizeOf(text);
    if (bytes === undefined) throw new InvalidArgumentError('It must be a size: bytes, 64K, 1.5G (1,024 each) or 1GB (10^9).');
    return bytes;
  });
}

function collected(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** The parameters of these options. */
export function filterParameters(options: FilterOptions) {
  return { ...textParameters(options), ...keyParameters(options), ...sizeParameters(options), ...objectParameters(options) };
}

function textParameters({ query, tz, modifiedAfter, modifiedBefore }: FilterOptions) {
  return {
    ...defined({ query, tz, modified_after: modifiedAfter, modified_before: modifiedBefore }),
  };
}

function keyParameters({ key, contains, match, extension }: FilterOptions) {
  return {
    ...defined({ key, contains, match, extension }),
  };
}

function sizeParameters({ sizeMin, sizeMax }: FilterOptions) {
  return defined({ size_min: sizeMin, size_max: sizeMax });
}

function objectParameters({ contentType, storageClass, etag, tag, meta }: FilterOptions) {
  return {
    ...defined({ content_type: contentType, storage_class: storageClass, etag, tag, meta }),
  };
}
