/** The audit: who did what, one row for each act. */
import type { AuditEvent } from '../../base/audit.ts';
import type { AnswerTo, RequestTo } from './api.ts';
import { facts } from './facts.ts';
import { Lines } from './findings.tsx';
import { Field, Select } from './form.tsx';
import { PAGE_MAX, useAnswer } from './load.ts';
import { type Column, Fold, Listed, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';

type Query = NonNullable<RequestTo<'GET /v1/admin/audit'>['query']>;
type Entry = AnswerTo<'GET /v1/admin/audit'>['items'][number];

/** What the person was about to do; the outcome says whether it was done. */
const acts: Readonly<Record<AuditEvent, string>> = {
  Login: 'log in',
  LoginFailed: 'log in (refused)',
  Logout: 'log out',
  ApiKeyCreate: 'create an API key',
  ApiKeyUse: 'use an API key',
  ApiKeyRevoke: 'revoke an API key',
  ApiKeyRevokeBySecret: 'revoke an API key by its secret',
  AuthenticationFailed: 'send wrong credentials',
  BucketConnect: 'connect a bucket',
  BucketChange: 'change how a bucket is connected',
  BucketRemove: 'disconnect a bucket',
  BucketPause: 'pause a notification',
  BucketResume: 'resume a notification',
  BucketTokenRotate: 'create a webhook token',
  ReindexStart: 'start a re-index',
  ReindexPause: 'pause a re-index',
  ReindexResume: 'resume a re-index',
  ReindexCancel: 'cancel a re-index',
  ReindexAllow: 'allow the deletions of a job',
  ReindexDecline: 'decline the deletions of a job',
  DeadLettersReplay: 'replay dead letters',
  DeadLettersDiscard: 'discard dead letters',
  SweepDelete: 'delete documents of objects that are gone',
  UserGrant: 'make an administrator',
  UserGrantWithdraw: 'withdraw an appointment',
  GrantAdd: 'grant access',
  GrantRemove: 'remove a grant',
  UserDisable: 'disable a user',
  UserEnable: 'enable a user',
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
  const loaded = useAnswer('GET /v1/admin/audit', { query: { ...query, limit: PAGE_MAX } });
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
        loaded={{ ...loaded, value: loaded.value && { ...loaded.value, items: endsOf(loaded.value.items) } }}
        label="Audited actions"
        columns={columns}
        keyOf={({ id }) => id}
        empty="No action matches."
      />
    </>
  );
}

/** One record for each act: the later of its two, which comes first. */
export function endsOf(records: readonly Entry[]): readonly Entry[] {
  const ended = new Set<string>();
  return records.filter(({ outcome, request_id: request, eventname }) => {
    const act = `${request} ${eventname}`;
    if (outcome === 'intended') return !ended.has(act);
    ended.add(act);
    return true;
  });
}

/** What the act was done to, according to its parameters. */
function subjectOf({ parameters = {} }: Entry): string {
  const named = ['bucket', 'name', 'email', 'who', 'id'].map((each) => parameters[each]);
  return named.find((each) => typeof each === 'string') ?? '';
}

const columns: readonly Column<Entry>[] = [
  ['Time', ({ eventtime: at }) => <Time at={at} />],
  ['Who', (record) => <Text>{record.useridentity.email}</Text>],
  ['Act', ({ eventname }) => acts[eventname], 'row'],
  ['To what', (record) => <Text>{subjectOf(record)}</Text>],
  ['Outcome', (record) => <Outcome of={record} />],
  ['Details', (record) => <Fold summary="Details">{() => <Lines>{JSON.stringify(record, null, 2)}</Lines>}</Fold>],
];

/** An act without an end is still running, or its process was killed. */
function Outcome({ of: { outcome, reason = '' } }: { readonly of: Entry }) {
  if (outcome === 'done') return <>done</>;
  return (
    <>
      <span class={`state ${outcome === 'failed' ? 'bad' : 'notable'}`}>{outcome === 'failed' ? 'failed' : 'outcome unknown'}</span>{' '}
      <Text>{reason}</Text>
    </>
  );
}
