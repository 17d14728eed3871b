/**
 * Numbers in sentences of pages that are written by hand. `npm run docs` writes each from the code: a sentence has a gap `{}` for
 * each number, and the words around a gap say where it stands. A page that has lost the sentence, or has it twice, is a mistake.
 */
import { settingsSchema } from '../../src/settings/settings.ts';
import { textOf } from './pages.ts';

/** A sentence with its gaps, and what stands in them. */
type Fact = readonly [sentence: string, ...numbers: readonly string[]];

/** How many thousandths, bytes or days of the code are one of what the page counts in. */
const UNITS = { '': 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000, '%': 0.01, KiB: 1_024, daysOfSeconds: 86_400 } as const;
type Unit = keyof typeof UNITS;

const WORDS = [
  'no',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
  'thirteen',
  'fourteen',
];

/** The number as the pages write it: 10,000. */
function figure(value: number): string {
  const rounded = Math.round(value * 1_000) / 1_000;
  return rounded.toLocaleString('en-US');
}

/** A constant of a file of src/, or the item of one that is a list, in a unit. */
function of(file: string, name: string, unit: Unit = '', item = 0): string {
  return figure(constantOf(file, name, item) / UNITS[unit]);
}

/** The same as a word, such as ten. */
function wordOf(file: string, name: string, unit: Unit = ''): string {
  const value = constantOf(file, name, 0) / UNITS[unit];
  const word = WORDS[value];
  if (word === undefined) throw new Error(`${name} of ${file} is ${value}, for which there is no word here`);
  return word;
}

/** The default of a setting, in a unit. */
function setting(name: keyof typeof settingsSchema.shape, unit: Unit = ''): string {
  const value = settingsSchema.parse({})[name];
  if (typeof value !== 'number') throw new Error(`${name} has no number as its default`);
  return figure(value / UNITS[unit]);
}

/** The value of a constant as the source states it: numbers, and other constants of the file, with + - * and /. */
function constantOf(file: string, name: string, item: number): number {
  const source = textOf(`src/${file}`);
  const [whole = '', key] = name.split('.');
  const text = new RegExp(
    `\\b${whole}(?:: [^=;]+)? = ${key === undefined ? '' : `\\{[^;]*?\\b${key}: `}([^;${key === undefined ? '' : ',}'}]+)`,
  ).exec(source)?.[1];
  if (text === undefined) throw new Error(`src/${file} has no constant ${name}`);
  const expression = text.startsWith('[') ? (text.slice(1, text.indexOf(']')).split(',')[item] ?? '') : text;
  const [first = '', ...rest] = expression.trim().split(/ (?=[-+*/] )/);
  return rest.reduce((sum, part) => calculated(sum, part.slice(0, 1), termOf(file, part.slice(2))), termOf(file, first));
}

function calculated(left: number, sign: string, right: number): number {
  if (sign === '*') return left * right;
  if (sign === '/') return left / right;
  return sign === '+' ? left + right : left - right;
}

function termOf(file: string, text: string): number {
  return /^[A-Z]/.test(text) ? constantOf(file, text, 0) : Number(text.replaceAll('_', ''));
}

/** The whole minutes for which a message is hidden in all until it is handed over, as a word. */
function minutesHidden(): string {
  const [minS = 0, maxS = 0, receives = 0] = ['HIDDEN_MIN_S', 'HIDDEN_MAX_S', 'HANDED_OVER_AT_RECEIVE'].map((name) =>
    constantOf('indexer/waiting.ts', name, 0),
  );
  const hiddenS = Array.from({ length: receives - 1 }, (_, times) => Math.min(maxS, minS * 2 ** times));
  return WORDS[Math.floor(hiddenS.reduce((sum, each) => sum + each, 0) / 60)] ?? '';
}

const KEYS = 'identity/api-key.rules.ts';
const ORDERING = 'ordering/constants.ts';
const SETTLED_AFTER_MS = ['MARGIN_MS', 'SETTLE_MS', 'SETTLE_SLACK_MS'].reduce((sum, name) => sum + constantOf(ORDERING, name, 0), 0);
const DIRTY = 'records/dirty.ts';
const SERVER = 'registry/server.ts';
const USUAL_INTERVAL = 'records/usual-interval.ts';
const tombstones = wordOf('ordering/constants.ts', 'TOMBSTONE_LIFE_MS', 'd');
const sessionHours = of('identity/session.rules.ts', 'BROWSER_MS', 'h');
const handedOverAfter = minutesHidden();
const hiddenFrom = of('indexer/waiting.ts', 'HIDDEN_MIN_S');
const hiddenTo = of('indexer/waiting.ts', 'HIDDEN_MAX_S');
const unusualSilence = wordOf(USUAL_INTERVAL, 'INTERVALS_MAX');

/** By page. */
const facts: Readonly<Record<string, readonly Fact[]>> = {
  'README.md': [
    [
      'more than {} documents or {} % of the documents under its prefix',
      of('repair/job.rules.ts', 'DELETIONS_MIN'),
      of('repair/job.rules.ts', 'DELETIONS_SHARE', '%'),
    ],
  ],
  'docs/audit.md': [
    ['for each key, operation, address and {} seconds', wordOf('identity/audit-windows.ts', 'USES_MS', 's')],
    ['with at most {} keys', of('repair/sweeps.ts', 'KEYS_MAX')],
  ],
  'docs/concepts.md': [['It stays for {} days', tombstones]],
  'docs/guides/access.md': [
    ['There may be {} grants', of('identity/grants/policy.rules.ts', 'GRANTS_MAX')],
    ['at most {} separate parts', of('store/readable.rules.ts', 'PARTS_MAX')],
    ['`TALLY_KEYS_CLAIMS_DAYS` ({} by default)', setting('TALLY_KEYS_CLAIMS_DAYS')],
    [
      'at most {}, each with at most {} characters',
      of('identity/claims.rules.ts', 'GROUPS_MAX'),
      of('identity/grants/grant.rules.ts', 'GROUP_LENGTH_MAX'),
    ],
  ],
  'docs/guides/api-keys.md': [
    ['| name | 1 to {} printable', of(KEYS, 'KEY_NAME_LENGTH_MAX')],
    ['from 1 to {}; {} unless', of(KEYS, 'EXPIRES_IN_DAYS_MAX'), of(KEYS, 'EXPIRES_IN_DAYS_DEFAULT')],
    ['at most {} that are `ACTIVE`, and {} with', of(KEYS, 'KEYS_LIVE_MAX'), of(KEYS, 'KEYS_LISTED_MAX')],
    ['| requests with a key | {} a second', of('identity/authenticate-key.ts', 'REQUESTS_PER_S')],
    ['can be revoked; {} days after their end', of(KEYS, 'KEPT_AFTER_EXPIRY_MS', 'd')],
    ['From {} days before a key ends', of(KEYS, 'EXPIRY_WARNING_MS', 'd')],
    ['has not logged in for {} days, the key has no scope', of('identity/key-scopes.rules.ts', 'CLAIMED_ROLE_MAX_MS', 'd')],
    ['the prefix, {} base62 digits', of(KEYS, 'RANDOM_DIGITS')],
    ['of {} random bytes, and {} base62 digits', of(KEYS, 'KEY_RANDOM_BYTES'), of(KEYS, 'CHECKSUM_DIGITS')],
    ['The fingerprint shows {} digits', of(KEYS, 'FINGERPRINT_DIGITS')],
  ],
  'docs/guides/connect.md': [['connect {} at a time', wordOf('cli/bucket.ts', 'AT_ONCE')]],
  'docs/guides/container.md': [
    ['with `maxReceiveCount` {})', of('connect/shared.rules.ts', 'RECEIVES_WANTED')],
    ['`TALLY_SHUTDOWN_TIMEOUT_MS` ({} s)', setting('TALLY_SHUTDOWN_TIMEOUT_MS', 's')],
  ],
  'docs/guides/login.md': [
    ['the administrator role for {} hours', sessionHours],
    ['for at most {} days. `tally admin dismiss` revokes', of('identity/user.rules.ts', 'WAITS_MS', 'd')],
    ["program's session for {} hours", sessionHours],
    ['(1 to 90, by default {})', setting('TALLY_SESSION_DAYS')],
    ['is a cookie for {} hours', sessionHours],
  ],
  'docs/guides/mcp.md': [
    ['at most {} items, and {} unless', of('registry/tools.ts', 'LIMIT_MAX'), of('registry/tools.ts', 'LIMIT_DEFAULT')],
    ['then shows the worst {}.', wordOf('registry/tools.ts', 'BUCKETS_MAX')],
    ['A message has at most {} KiB', of(SERVER, 'BODY_BYTES_MAX', 'KiB')],
  ],
  'docs/guides/panel.md': [
    ['within the last {} days.', tombstones],
    ['shows {} rows, and **More** opens the next.', of('panel/browser/results.tsx', 'PAGE')],
    ['down to {} levels', of('ordering/document.ts', 'FOLDER_LEVELS')],
    ['changes of the index within {} hours', of('search/search.ts', 'SINCE_MS', 'h')],
  ],
  'docs/guides/search.md': [
    ['counted up to {}.', of('search/search.ts', 'TOTAL_MAX')],
    ['at most {} clauses and {} values', of('search/parse.rules.ts', 'CLAUSES_MAX'), of('search/parse.rules.ts', 'VALUES_MAX')],
    ['together at most {} parts', of('store/conditions.rules.ts', 'WEIGHT_MAX')],
    ['{} to {} characters |', of('store/pattern.rules.ts', 'LITERAL_MIN'), of('store/pattern.rules.ts', 'TEXT_MAX')],
    [
      'at most {} `*`, {} `?` and {} bytes',
      of('store/pattern.rules.ts', 'STARS_MAX'),
      of('store/pattern.rules.ts', 'QUESTIONS_MAX'),
      of('store/pattern.rules.ts', 'PATTERN_BYTES_MAX'),
    ],
    ['deleted in the last {} days. Combines', tombstones],
    ['counted down to {} levels', of('ordering/document.ts', 'FOLDER_LEVELS')],
    ['request that takes longer than {} seconds', of('search/search.ts', 'TIME_LIMIT_MS', 's')],
  ],
  'docs/guides/systemd.md': [['Stopping takes up to {} s', setting('TALLY_SHUTDOWN_TIMEOUT_MS', 's')]],
  'docs/internals/data-path.md': [
    ['about {} s after the event, when', figure(SETTLED_AFTER_MS / 1_000)],
    ['N = min({}, ', of('events/outcome.ts', 'LAST_RECEIVE')],
    ['Below a limit of {}, N', of('events/outcome.ts', 'LIMIT_MIN')],
    ['one record for every {} characters', of('indexer/held-set.ts', 'RECORD_CHARACTERS')],
    ['running polls {} ms to end', of('indexer/indexer.ts', 'POLL_GRACE_MS')],
  ],
  'docs/internals/ordering.md': [
    ['| A | {} day |', of(ORDERING, 'EXACT_AGE_MAX_MS', 'd')],
    ['| C | {} s |', of(ORDERING, 'BUCKET_RECORD_AGE_MAX_MS', 's')],
    ['| E | {} s |', of(ORDERING, 'SETTLE_SLACK_MS', 's')],
    ['| F | {} s |', of(ORDERING, 'FUTURE_MS', 's')],
    ['| L | {} days |', of(ORDERING, 'TOMBSTONE_LIFE_MS', 'd')],
    ['| M | {} s |', of(ORDERING, 'MARGIN_MS', 's')],
    ['| P | {} s |', of(ORDERING, 'ANSWER_LIFE_MS', 's')],
    ['| Q | {} s |', of(ORDERING, 'RECONCILE_WAIT_MS', 's')],
    ['| S | {} s |', of(ORDERING, 'SETTLE_MS', 's')],
    ['| V | {} s |', of(ORDERING, 'VERSIONING_READ_AFTER_MS', 's')],
    ['| W | {} s |', of(ORDERING, 'PLAUSIBLE_MS', 's')],
  ],
  'docs/operate/backup-upgrade.md': [['`TALLY_SHUTDOWN_TIMEOUT_MS` ({} s)', setting('TALLY_SHUTDOWN_TIMEOUT_MS', 's')]],
  'docs/operate/dead-letters.md': [
    ['goes there at its {}th receive', of('events/outcome.ts', 'LAST_RECEIVE')],
    ['queue permits {} or fewer', of('events/outcome.ts', 'LAST_RECEIVE')],
    ['With {}, as `tally setup`', of('connect/shared.rules.ts', 'RECEIVES_WANTED')],
    ['and every {} minutes (once a day', wordOf('repair/dead-letters.ts', 'READ_EVERY_MS', 'min')],
    ['**More than {} letters**', of('repair/dead-letters.ts', 'LETTERS_MAX')],
  ],
  'docs/operate/reindex-gaps.md': [
    ['may differ by up to {} s', figure((constantOf('ordering/constants.ts', 'PLAUSIBLE_MS', 0) + 2_000) / 1_000)],
    ['every `TALLY_COMPARE_INTERVAL_DAYS` ({})', setting('TALLY_COMPARE_INTERVAL_DAYS')],
    [
      'may delete at most {} documents, or {} % of',
      of('repair/job.rules.ts', 'DELETIONS_MIN'),
      of('repair/job.rules.ts', 'DELETIONS_SHARE', '%'),
    ],
    [
      'more than {} objects of a bucket gone in a minute (or more than half of them and at least {})',
      of('observing/observer.ts', 'ABSENT_MAX'),
      wordOf('observing/observer.ts', 'HALF_FROM'),
    ],
    ['did not answer, usually for {} minutes: Tally', handedOverAfter],
    ['begins {} s after the last report, and {} minutes after', of(DIRTY, 'QUIET_MS', 's'), of(DIRTY, 'OPEN_MAX_MS', 'min')],
    ['for the first time after {} % of', of('indexer/expired-messages.ts', 'RETENTION_PART', '%')],
    ['removes tombstones after {} days', tombstones],
    ['read it every {} s', of('cli/jobs.ts', 'LOOK_INTERVAL_MS', 's')],
    ['becomes a warning after {} minutes', wordOf('observing/readiness.ts', 'UNCLAIMED_MS', 'min')],
  ],
  'docs/operate/scaling.md': [['1,000 × {} s = 60,000', setting('TALLY_TARGET_LAG_S')]],
  'docs/operate/sizing.md': [['receiving pauses at {} messages in flight', of('serve/limits.ts', 'IN_FLIGHT_MAX')]],
  'docs/operate/troubleshooting.md': [
    ['over {} requests a second with one API key', of('identity/authenticate-key.ts', 'REQUESTS_PER_S')],
    [
      'its message, for {} s, then twice as long each time, at most {} min',
      of('events/outcome.ts', 'DEFER_MIN_S'),
      figure(constantOf('events/outcome.ts', 'DEFER_MAX_S', 0) / 60),
    ],
    [
      'in flight for up to {} hours, and resume through a probe after {} s, then at most every {} s',
      of('indexer/held-set.ts', 'HOLD_MAX_MS', 'h'),
      of('observing/circuits.ts', 'PROBE_MIN_MS', 's'),
      of('observing/circuits.ts', 'PROBE_MAX_MS', 's'),
    ],
    ['in its queue for {} s, then twice as long each time, at most {} s', hiddenFrom, hiddenTo],
    ["can't process a message for {} minutes", handedOverAfter],
    ['no event has arrived for {} times as long', unusualSilence],
  ],
  'docs/reference/endpoints-proxies.md': [
    ['each request gives up after {} s', of('aws/credentials.ts', 'LIMIT_MS', 's')],
    ['the request gives up after {} s', of('aws/credentials.ts', 'LIMIT_MS', 's')],
    ['each of {} requests ends after {} s', wordOf('aws/clients.ts', 'ATTEMPTS_MAX'), of('aws/clients.ts', 'STS_TIMEOUT_MS', 's')],
  ],
  'docs/reference/sources.md': [
    ['Workers notice a new one within {} seconds', of('indexer/admission.ts', 'BUCKETS_AGE_MAX_MS', 's')],
    ['no event has arrived for {} times as long', unusualSilence],
    ['after {} more days the', of(USUAL_INTERVAL, 'DORMANT_MS', 'd')],
    ['older than {} intervals', wordOf('records/bucket-status.ts', 'OVERDUE_INTERVALS')],
    ['applies to new events within {} seconds', of('ordering/constants.ts', 'BUCKET_RECORD_AGE_MAX_MS', 's')],
  ],
  'docs/security.md': [
    ['the key expires ({} days at most)', of(KEYS, 'EXPIRES_IN_DAYS_MAX')],
    ['{} requests a second; the audit records each use', of('identity/authenticate-key.ts', 'REQUESTS_PER_S')],
    ['{} days after it by default (`TALLY_SESSION_DAYS`)', setting('TALLY_SESSION_DAYS')],
    ['for {} hours after the login', sessionHours],
    ['codes valid for {} s', of('identity/login.rules.ts', 'CODE_MS', 's')],
    ['ranges wider than /{} (IPv6: /{})', of('settings/identity.ts', 'PREFIX_MIN.ipv4'), of('settings/identity.ts', 'PREFIX_MIN.ipv6')],
    ['keep at most {} connections', of(SERVER, 'CONNECTIONS_MAX')],
    ['must arrive within {} s', of(SERVER, 'REQUEST_TIMEOUT_MS', 's')],
    [
      'At most {} searches run at the same time and {} wait',
      of('registry/control-plane.ts', 'CONCURRENCY'),
      of('registry/control-plane.ts', 'WAITING_MAX'),
    ],
  ],
};

/** The pages that have such numbers. */
export const pagesWithFacts: readonly string[] = Object.keys(facts);

/** The text of a page with the numbers of the code. Throws for a sentence that does not stand there once. */
export function withFacts(path: string, text: string): string {
  return (facts[path] ?? []).reduce((written, fact) => withFact(path, written, fact), text);
}

function withFact(path: string, text: string, [sentence, ...numbers]: Fact): string {
  const parts = sentence.split('{}');
  const pattern = new RegExp(
    parts.map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}/]/g, String.raw`\$&`)).join(String.raw`\w+(?:[.,]\w+)*`),
    'g',
  );
  const found = text.match(pattern) ?? [];
  if (found.length !== 1) throw new Error(`${path} has ${found.length} times the sentence “${sentence}”, which docs/facts.ts fills in`);
  const filled = parts.map((part, index) => part + (numbers[index] ?? '')).join('');
  return text.replace(pattern, () => filled);
}
