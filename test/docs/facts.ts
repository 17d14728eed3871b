/**
 * Numbers in sentences of pages that are written by hand, on which people rely: what may be deleted, how long a key or a session
 * lives, when a message is a dead letter, what a limit refuses. `npm run docs` writes each from the code where the sentence has its
 * gap `{}`. A page that has lost the sentence, or has it twice, is a mistake.
 */
import { settingsSchema } from '../../src/settings/settings.ts';
import { textOf } from './pages.ts';

const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];

/** A constant of a file of src/, a product of numbers there, in a unit. */
function of(file: string, name: string, unit = 1): string {
  const product = new RegExp(String.raw`\b${name}(?: = |: )([^;,}]+)`).exec(textOf(`src/${file}`))?.[1] ?? '';
  const factors = product.split('*').map((factor) => ({ HOUR_MS, DAY_MS })[factor.trim()] ?? Number(factor.trim().replaceAll('_', '')));
  return (factors.reduce((left, right) => left * right) / unit).toLocaleString('en-US');
}

const KEYS = 'identity/api-key.rules.ts';
const TOKENS = 'identity/tokens.rules.ts';
const JOB = 'repair/job.rules.ts';
const OUTCOME = 'events/outcome.ts';
const ORDERING = 'ordering/constants.ts';
const SERVER = 'registry/server.ts';
const deletions = [of(JOB, 'DELETIONS_MIN'), of(JOB, 'DELETIONS_SHARE', 0.01)];
const sessionDays = settingsSchema.parse({}).TALLY_SESSION_DAYS.toString();
const sessionHours = of('identity/session.rules.ts', 'BROWSER_MS', HOUR_MS);
const requestsOfKey = of('identity/authenticate-key.ts', 'REQUESTS_PER_S');

/** Each with its page, the sentence with its gaps, and what stands in them. */
const facts: readonly (readonly [page: string, sentence: string, ...numbers: readonly string[]])[] = [
  ['README.md', 'more than {} documents or {} % of the documents under its prefix', ...deletions],
  ['docs/guides/access.md', 'There may be {} grants', of('identity/grants/policy.rules.ts', 'GRANTS_MAX')],
  ['docs/guides/api-keys.md', 'from 1 to {}; {} unless', of(KEYS, 'EXPIRES_IN_DAYS_MAX'), of(KEYS, 'EXPIRES_IN_DAYS_DEFAULT')],
  ['docs/guides/api-keys.md', 'at most {} that are `ACTIVE`, and {} with', of(KEYS, 'KEYS_LIVE_MAX'), of(KEYS, 'KEYS_LISTED_MAX')],
  ['docs/guides/api-keys.md', '| requests with a key | {} a second', requestsOfKey],
  ['docs/guides/api-keys.md', 'for {} days, the key has no scope', of('identity/api-key.rules.ts', 'CLAIMED_ROLE_MAX_MS', DAY_MS)],
  ['docs/guides/api-keys.md', 'of {} random bytes, and {} base62', of(TOKENS, 'SECRET_BYTES'), of(KEYS, 'CHECKSUM_DIGITS')],
  ['docs/guides/container.md', 'with `maxReceiveCount` {})', of('connect/shared.rules.ts', 'RECEIVES_WANTED')],
  ['docs/guides/login.md', 'the administrator role for {} hours', sessionHours],
  ['docs/guides/login.md', '(1 to 90, by default {})', sessionDays],
  ['docs/internals/ordering.md', '| A | {} day |', of(ORDERING, 'EXACT_AGE_MAX_MS', DAY_MS)],
  ['docs/internals/ordering.md', '| C | {} s |', of(ORDERING, 'BUCKET_RECORD_AGE_MAX_MS', 1_000)],
  ['docs/internals/ordering.md', '| E | {} s |', of(ORDERING, 'SETTLE_SLACK_MS', 1_000)],
  ['docs/internals/ordering.md', '| F | {} s |', of(ORDERING, 'FUTURE_MS', 1_000)],
  ['docs/internals/ordering.md', '| L | {} days |', of(ORDERING, 'TOMBSTONE_LIFE_MS', DAY_MS)],
  ['docs/internals/ordering.md', '| M | {} s |', of(ORDERING, 'MARGIN_MS', 1_000)],
  ['docs/internals/ordering.md', '| P | {} s |', of(ORDERING, 'ANSWER_LIFE_MS', 1_000)],
  ['docs/internals/ordering.md', '| Q | {} s |', of(ORDERING, 'RECONCILE_WAIT_MS', 1_000)],
  ['docs/internals/ordering.md', '| S | {} s |', of(ORDERING, 'SETTLE_MS', 1_000)],
  ['docs/internals/ordering.md', '| V | {} s |', of(ORDERING, 'VERSIONING_READ_AFTER_MS', 1_000)],
  ['docs/internals/ordering.md', '| W | {} s |', of(ORDERING, 'PLAUSIBLE_MS', 1_000)],
  ['docs/operate/dead-letters.md', 'goes there at its {}th receive', of(OUTCOME, 'LAST_RECEIVE')],
  ['docs/operate/dead-letters.md', 'queue permits {} or fewer', of(OUTCOME, 'LAST_RECEIVE')],
  ['docs/operate/dead-letters.md', 'With {}, as `tally setup`', of('connect/shared.rules.ts', 'RECEIVES_WANTED')],
  ['docs/operate/reindex-gaps.md', 'may delete at most {} documents, or {} % of', ...deletions],
  ['docs/operate/reindex-gaps.md', 'more than {} objects of a bucket gone', of('observing/observer.ts', 'ABSENT_MAX')],
  ['docs/operate/sizing.md', 'receiving pauses at {} messages in flight', of('serve/limits.ts', 'IN_FLIGHT_MAX')],
  ['docs/security.md', 'the key expires ({} days at most)', of(KEYS, 'EXPIRES_IN_DAYS_MAX')],
  ['docs/security.md', '{} requests a second; the audit records each use', requestsOfKey],
  ['docs/security.md', '{} days after it by default (`TALLY_SESSION_DAYS`)', sessionDays],
  ['docs/security.md', 'for {} hours after the login', sessionHours],
  ['docs/security.md', 'codes valid for {} s', of('identity/login.rules.ts', 'CODE_MS', 1_000)],
  ['docs/security.md', 'ranges wider than /{} (IPv6: /{})', of('settings/identity.ts', 'ipv4'), of('settings/identity.ts', 'ipv6')],
  ['docs/security.md', 'keep at most {} connections', of(SERVER, 'CONNECTIONS_MAX')],
  ['docs/security.md', 'must arrive within {} s', of(SERVER, 'REQUEST_TIMEOUT_MS', 1_000)],
];

/** The pages that have such numbers. */
export const pagesWithFacts: readonly string[] = [...new Set(facts.map(([page]) => page))];

/** The text of a page with the numbers of the code. Throws for a sentence that does not stand there once, and for a number that is none. */
export function withFacts(path: string, text: string): string {
  return facts.filter(([page]) => page === path).reduce((written, [, ...fact]) => withFact(path, written, fact), text);
}

function withFact(path: string, text: string, [sentence = '', ...numbers]: readonly string[]): string {
  const parts = sentence.split('{}').map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}/]/g, String.raw`\$&`));
  const found = [...text.matchAll(new RegExp(parts.join(String.raw`\w+(?:[.,]\w+)*`), 'g'))].map(([words]) => words);
  if (found.length !== 1 || numbers.includes('NaN')) throw new Error(`${path} has ${found.length} times “${sentence}”: ${numbers.join()}`);
  return text.replace(found[0]!, () => sentence.replaceAll('{}', () => numbers.shift()!));
}
