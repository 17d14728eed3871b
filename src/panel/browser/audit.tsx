/** The audit: who did what, one row for each act. */
import type { AuditEvent } from '../../base/audit.ts';
import type { AnswerTo, RequestTo } from './api.ts';
import { facts } from './facts.ts';
import { Lines } from './findings.tsx';
import { Field, Select } from './form.tsx';
import { usePages } from './load.ts';
import { type Column, Fold, Listed, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';

type Query = NonNullable<RequestTo<'GET /v1/admin/audit'>['query']>;
type Entry = AnswerTo<'GET /v1/admin/audit'>['items'][number];

/** What the person did. */
const acts: Readonly<Record<AuditEvent, string>> = {
  Login: 'logged in',
  LoginFailed: 'could not log in',
  Logout: 'logged out',
  ApiKeyCreate: 'created an API key',
  ApiKeyUse: 'used an API key',
  ApiKeyRevoke: 'revoked an API key',
  ApiKeyRevokeBySecret: 'revoked an API key by its secret',
  AuthenticationFailed: 'was refused for wrong credentials',
  BucketConnect: 'connected a bucket',
  BucketChange: 'changed how a bucket is connected',
  BucketRemove: 'disconnected a bucket',
  BucketPause: 'paused a notification',
  BucketResume: 'resumed a notification',
  ReindexStart: 'started a re-index',
  ReindexPause: 'paused a re-index',
  ReindexResume: 'resumed a re-index',
  ReindexCancel: 'cancelled a re-index',
  ReindexAllow: 'allowed the deletions of a job',
  ReindexDecline: 'declined the deletions of a job',
  DeadLettersReplay: 'replayed dead letters',
  DeadLettersDiscard: 'discarded dead letters',
  SweepDelete: 'deleted documents of objects that are gone',
  UserGrant: 'made an administrator',
  UserGrantWithdraw: 'withdrew an appointment',
  GrantAdd: 'granted access',
  GrantRemove: 'removed a grant',
  UserDisable: 'disabled a user',
  UserEnable: 'enabled a user',
};

function queryOf({ day = '', email = '', event }: Choices): Query {
  const known = facts.auditEvents.find((each) => each === event);
  return {
    ...(day !== '' && { date: day.replaceAll('-', '/') }),
    ...(email !== '' && { email }),
    ...(known !== undefined && { event: known }),
  };
}

export function AuditPage({ choices }: { readonly choices: Choices }) {
  const query = queryOf(choices);
  const found = usePages('GET /v1/admin/audit', { query });
  const set = (name: string) => (value: string) => go(hrefOf('audit', { ...choices, [name]: value }));
  return (
    <>
      <h1>Audit</h1>
      <div class="filters">
        <Field label="Day (UTC)" type="date" value={choices['day'] ?? ''} onChosen={set('day')} />
        <Field label="E-mail address" value={choices['email'] ?? ''} onChosen={set('email')} />
        <Select
          label="Act"
          value={choices['event'] ?? ''}
          onChosen={set('event')}
          choices={[['', 'all'], ...facts.auditEvents.map((each) => [each, acts[each]] as const)]}
        />
      </div>
      <Listed
        pages={{ ...found, items: found.items && endsOf(found.items) }}
        label="Acts of the audit"
        columns={columns}
        keyOf={({ id }) => id}
        empty="Nothing was done, or nothing that matches."
      />
    </>
  );
}

/** One record of each act: of the two that it has, the later one, which comes first. */
export function endsOf(records: readonly Entry[]): readonly Entry[] {
  const ended = new Set<string>();
  return records.filter(({ outcome, request_id: request, eventname }) => {
    const act = `${request} ${eventname}`;
    if (outcome === 'intended') return !ended.has(act);
    ended.add(act);
    return true;
  });
}

/** What the act was done to, of those parameters that say so. */
function subjectOf({ parameters = {} }: Entry): string {
  const named = ['bucket', 'name', 'email', 'who', 'id'].map((each) => parameters[each]);
  return named.find((each) => typeof each === 'string') ?? '';
}

const columns: readonly Column<Entry>[] = [
  ['Time', ({ eventtime: at }) => <Time at={at} />],
  ['Who', (record) => <Text>{record.useridentity.email}</Text>],
  ['Did what', ({ eventname }) => acts[eventname], 'row'],
  ['To what', (record) => <Text>{subjectOf(record)}</Text>],
  ['Outcome', (record) => <Outcome of={record} />],
  [
    'Details',
    (record) => (
      <Fold
        summary={
          <>
            Details<span class="unseen"> of {record.eventname}</span>
          </>
        }
      >
        {() => <Lines>{JSON.stringify(record, null, 2)}</Lines>}
      </Fold>
    ),
  ],
];

/** An act without an end is one that runs, or whose process was killed. */
function Outcome({ of: { outcome, reason = '' } }: { readonly of: Entry }) {
  if (outcome === 'done') return <>done</>;
  return (
    <>
      <span class={`state ${outcome === 'failed' ? 'bad' : 'notable'}`}>{outcome === 'failed' ? 'failed' : 'no end is recorded'}</span>{' '}
      <Text>{reason}</Text>
    </>
  );
}
