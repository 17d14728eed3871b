/**
 * Buckets computed from the number of a key, in UTF-8 byte order: two million keys need no room, and are the same in
 * every process.
 */

export const keyShapes = ['flat', 'deep', 'awkward', 'prefix', 'hash'] as const;
export type KeyShape = (typeof keyShapes)[number];

/** What a listing says of an object. */
export interface ListedState {
  /** Without quotes. */
  readonly etag: string;
  readonly sizeBytes: number;
  /** In whole seconds, as a HEAD tells it. */
  readonly lastModifiedMs: number;
  readonly storageClass: string;
}

export interface KeySpace {
  readonly count: number;
  /** The key number `at` (0 to count − 1) in UTF-8 byte order. */
  readonly keyAt: (at: number) => string;
  /** Its object. */
  readonly stateAt: (at: number) => ListedState;
}

/**
 * The keys of one shape. `deep` has folders of 100 keys within folders of 100; `awkward` has every kind of odd name in each
 * folder; `prefix` has all keys in one folder far down; the names of `hash` are hexadecimal digits without a pattern.
 */
export function createKeySpace(shape: KeyShape, count: number): KeySpace {
  return { count, keyAt: (at) => keyOf[shape](at, count), stateAt };
}

/** An object's state from two numbers: the same numbers, the same state. */
export function stateOf(seed: number, version = 0): ListedState {
  const a = mixed(seed + 1, version);
  const b = mixed(seed + 0x51_ed, version + 7);
  return {
    etag: `${hex(a)}${hex(b)}${hex(a ^ 0x5f_35_64_95)}${hex(b ^ 0x2c_1b_3c_6d)}`,
    sizeBytes: a % 10_000_000,
    lastModifiedMs: EPOCH_MS + (b % YEAR_S) * 1_000,
    storageClass: b % 16 === 0 ? 'STANDARD_IA' : 'STANDARD',
  };
}

/** 2024-01-01: long before any test runs, so that no document of it is in flight. */
const EPOCH_MS = 1_704_067_200_000;
const YEAR_S = 31_536_000;

const stateAt = (at: number): ListedState => stateOf(at);

const keyOf: Readonly<Record<KeyShape, (at: number, count: number) => string>> = {
  flat: (at) => `object-${digits(at, 10)}.bin`,
  deep: (at) => `team-${digits(Math.floor(at / 10_000), 5)}/day-${digits(Math.floor(at / 100) % 100, 2)}/part-${digits(at % 100, 2)}.json`,
  prefix: (at) => `backups/2026/cluster-7/volume-0001/generation-12/segments/block-${digits(at, 9)}.seg`,
  // a place of its own for each key, and chance within it: the order is kept
  hash: (at, count) => {
    const place = Math.floor(HASHES / count);
    const position = at * place + (mixed(at, 3) % place);
    return `${hex4(Math.floor(position / 2 ** 32))}${hex(position)}${hex(mixed(at, 5))}`;
  },
  awkward: (at) => `g${digits(Math.floor(at / awkwardNames.length), 6)}/${awkwardNames[at % awkwardNames.length] ?? ''}`,
};

/** The first twelve hexadecimal digits of a hash, which a number holds exactly. */
const HASHES = 2 ** 48;

function digits(value: number, length: number): string {
  return String(value).padStart(length, '0');
}

/** Four hexadecimal digits of each number of 16 bits: millions of keys and states are made of them. */
const HEX4 = Array.from({ length: 2 ** 16 }, (_, value) => value.toString(16).padStart(4, '0'));

function hex4(value: number): string {
  return HEX4[value & 0xff_ff] ?? '';
}

/** The lowest 32 bits in eight hexadecimal digits. */
function hex(value: number): string {
  return hex4(value >>> 16) + hex4(value);
}

/** Two rounds of the murmur3 finalizer: neighbours are far apart. */
function mixed(value: number, salt: number): number {
  let hash = Math.imul(value ^ Math.imul(salt, 0x9e_37_79_b1), 0x85_eb_ca_6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Names that have broken programs before: below and above the surrogates, prefixes of each other, control characters, as long as a key may be. */
export const awkwardNames: readonly string[] = [
  '\u0001',
  '\t',
  '\r\n',
  ' ',
  ' trailing ',
  '!',
  '"quoted"',
  '#hash',
  '%',
  '%20',
  '%2B',
  '&amp;',
  "'",
  '(1).png',
  '*',
  '+',
  '+a b',
  '.hidden',
  '..dots',
  '/',
  '//twice',
  ';',
  '<tag>',
  '=x',
  '?a=b&c',
  '@',
  'A',
  '[0]',
  String.raw`back\slash`,
  '^',
  '`',
  'a',
  'a!b',
  'a/',
  'a/b',
  'a/b/',
  'ab',
  '{}',
  '|',
  '~',
  '\u007f',
  '\u00e9',
  'e\u0301',
  '\u00fc\u00df',
  '\u65e5\u672c.txt',
  '\ud7ff',
  '\ue000',
  '\ufb01',
  '\ufeffbom',
  '\ufffd',
  '\uffff',
  '\u{10000}',
  '\u{1f600}',
  '\u{1f600}/x',
  '\u{20000}',
  '\u{10ffff}',
  'x'.repeat(1_000),
  `x${'\u9577'.repeat(330)}`,
].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
