/** Access: who may read which keys. */
import { z } from 'zod';
import { canonicalWho, grantSchema, WHO, whereSchema, type Grant } from '../../identity/grants/grant.rules.ts';
import { roles } from '../../base/actor.ts';
import { hasSecret } from '../../base/secrets.ts';
import { columnsOf } from './command.ts';
import { readingReasons, readsText } from './reading-texts.ts';
import { id, must, pageOf, time, paging } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** A prefix has at most the 1,024 bytes of a key. */
const WHERE = /^(?:\*|[a-zA-Z0-9][a-zA-Z0-9._-]{1,253}[a-zA-Z0-9]{1}(?:\/[\s\S]{0,1024})?)$/;

const who = z
  .string(must('must be text'))
  .regex(WHO, 'must be user:EMAIL, group:VALUE with at most 256 characters, or everyone')
  .refine((text) => !hasSecret(text), 'must not contain an API key or a token, because it is shown')
  .transform(canonicalWho)
  .describe(
    '`user:EMAIL`, an address that the issuer must have verified; `group:VALUE`, a value of the claim TALLY_OIDC_GROUPS_CLAIM; or `everyone`.',
  );

const where = z
  .string(must('must be text'))
  .regex(WHERE, 'must be BUCKET, BUCKET/PREFIX, or * for every bucket')
  .pipe(whereSchema)
  .describe('`BUCKET`, `BUCKET/PREFIX`, or `*` for every bucket. A prefix may end within a name: `logs/a` matches `logs/ab/x`.');

const grant = grantSchema
  .extend({ created_at: time.describe('When it was granted.') })
  .meta({ id: 'Grant', description: 'Lets someone read all keys of a bucket, or those with a prefix.' });

const body = z.strictObject({ who, where }, must('must be {"who": "…", "where": "…"}'));

const reader = z
  .object({
    user_id: z.string(),
    email: z.string(),
    role: z.enum(roles).describe('Administrators read everything.'),
    by: z.array(grant).readonly().describe('The grants that let the person read any of it; none for administrators.'),
  })
  .meta({ id: 'Reader', description: 'A person who can read anything in a bucket.' });
export type ReaderView = z.infer<typeof reader>;

const access = z
  .object({
    user_id: z.string(),
    email: z.string(),
    role: z.enum(roles),
    reads: z.array(z.string()).readonly().describe('What the person can read, merged: `BUCKET`, `BUCKET/PREFIX`, or `*` for everything.'),
    because: z
      .enum(['administrator', 'readers', 'grants', 'too_many'])
      .describe(
        '`readers`: TALLY_READERS is everyone. `too_many`: more than 300 separate parts are granted, so the person can read nothing; grant shorter prefixes.',
      ),
    grants: z.array(grant).readonly().describe('The grants that apply to the person.'),
    groups: z.array(z.string()).readonly().describe('The groups that the issuer sent at the last login.'),
    groups_left_out: z
      .boolean()
      .describe(
        'Whether the issuer sent a link instead of the groups because there are too many, or sent more than 1,000: let it send only the groups of this application.',
      ),
  })
  .meta({ id: 'Access', description: 'What a person can read, and why.' });
export type AccessView = z.infer<typeof access>;

const EXAMPLE = { who: 'group:analysts', where: 'photos/2026/' };

const grantColumns = columnsOf<Grant>({ WHO: 'who', WHERE: 'where', 'GRANTED BY': 'granted_by', SINCE: 'created_at' });

/** Warns if a prefix ends within a name, because it then covers more than the folder that its author may have meant. */
function prefixHints({ where: part }: Grant): readonly string[] {
  const [, prefix = ''] = /^[^/]*\/([^]*)$/.exec(part) ?? [];
  if (/[*?]/.test(prefix)) return [`${part} is compared letter by letter: * and ? stand for themselves`];
  if (prefix === '' || prefix.endsWith('/')) return [];
  return [`${part} does not end in a slash: it is the beginning of every key that continues it, such as ${part}2/x`];
}

function placeText({ where: part }: Grant): string {
  return part === '*' ? 'every bucket' : part;
}

export const accessRows = {
  'GET /v1/admin/grants': {
    operation: 'listGrants',
    summary: 'Lists the grants: who may read which keys.',
    scope: 'admin',
    query: z.strictObject({
      who: who.exactOptional().describe('Only grants to this person, group or everyone.'),
      where: where.exactOptional().describe('Only grants that let someone read any of this part.'),
      ...paging,
    }),
    answer: pageOf(grant).extend({
      readers: z
        .enum(['everyone', 'granted'])
        .describe('The setting TALLY_READERS. `everyone`: every user reads everything, regardless of grants.'),
    }),
    example: { query: { limit: 20 } },
    cli: {
      words: 'admin grants list',
      columns: grantColumns,
      none: 'Nothing is granted here. To grant something, run `tally admin grants add WHO WHERE`.',
      hints: ({ readers }: { readonly readers: string }) =>
        readers === 'everyone' ? ['TALLY_READERS is everyone: every user reads everything, regardless of grants'] : [],
      examples: ['tally admin grants list', 'tally admin grants list --where photos/2026/'],
    },
  },
  'POST /v1/admin/grants': {
    operation: 'addGrant',
    summary: 'Lets someone read all keys of a bucket, or those with a prefix.',
    description:
      'Grants only add up: a person can read the union of all grants that apply to them. A grant takes effect with the next request. Granting the same again changes nothing.',
    scope: 'people',
    body,
    answer: grant,
    status: 201,
    errors: ['grant.limit', 'state.conflict', 'audit.unavailable'],
    example: { body: EXAMPLE },
    cli: {
      words: 'admin grants add <who> <where>',
      text: (done: Grant) => `${done.who} may read ${placeText(done)}.`,
      hints: prefixHints,
      examples: ['tally admin grants add group:analysts photos/2026/'],
    },
  },
  'POST /v1/admin/grants/remove': {
    operation: 'removeGrant',
    summary: 'Removes a grant.',
    description: 'This takes effect with the next request. Access through other grants, or as an administrator, stays.',
    scope: 'people',
    body,
    answer: grant,
    errors: ['grant.not-found', 'state.conflict', 'audit.unavailable'],
    example: { body: EXAMPLE },
    cli: {
      words: 'admin grants remove <who> <where>',
      text: (done: Grant) => `${done.who} can no longer read ${placeText(done)} through this grant.`,
      examples: ['tally admin grants remove group:analysts photos/2026/'],
    },
  },
  'GET /v1/admin/readers': {
    operation: 'listReaders',
    summary: 'Lists the people who can read anything in a bucket, and through which grants.',
    description:
      'A page may have fewer items than its limit, even none, and still have a next page. Tally does not know people who have never logged in; the list of grants shows what they will be able to read.',
    scope: 'people',
    query: z.strictObject({ where, ...paging }),
    answer: pageOf(reader),
    example: { query: { where: 'photos/2026/', limit: 20 } },
    cli: {
      words: 'admin access',
      summary: 'Shows who can read anything in a bucket, or what one person can read, and through which grants.',
      columns: columnsOf<ReaderView>({
        ID: 'user_id',
        EMAIL: 'email',
        ROLE: 'role',
        BY: ({ by }) => by.map((each) => `${each.who} ${each.where}`).join(', '),
      }),
      none: 'No one on this page may read anything of it.',
      examples: ['tally admin access --where photos/2026/'],
    },
  },
  'GET /v1/admin/users/{id}/access': {
    operation: 'getAccess',
    summary: 'Shows what a person can read, and through which grants.',
    scope: 'people',
    params: z.object({ id: id.describe('The ID of the user, as shown in the list of users.') }),
    answer: access,
    errors: ['user.not-found'],
    example: { params: { id: '0aB1cD2eF3gH4iJ5kL6mN7' } },
    cli: {
      words: 'admin access',
      options: { id: 'user' },
      columns: columnsOf<AccessView>({
        email: 'email',
        role: 'role',
        reads: ({ reads }) => readsText(reads),
        because: ({ because }) => readingReasons[because],
        groups: ({ groups }) => groups.join(', '),
        'groups left out': ({ groups_left_out: isLeftOut }) =>
          isLeftOut ? 'the issuer sent too many: let it send only the groups of this application' : undefined,
      }),
      also: { grants: grantColumns },
      examples: ['tally admin access --user 0aB1cD2eF3gH4iJ5kL6mN7'],
    },
  },
} as const satisfies Record<RowKey, Row>;
