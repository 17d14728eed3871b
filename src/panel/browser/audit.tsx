/** The audit: who did what. */
import type { AnswerTo, RequestTo } from './api.ts';
import { call } from './api.ts';
import { facts } from './facts.ts';
import { usePages } from './load.ts';
import { Chosen, Select } from './form.tsx';
import { useObserved } from './observed.ts';
import { Listed, Table, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { zone } from './words.ts';

type Query = NonNullable<RequestTo<'GET /v1/admin/audit'>['query']>;
type Entry = AnswerTo<'GET /v1/admin/audit'>['items'][number];

/** The beginning of a day in the zone in which times are shown. */
function momentOf(day: string, addDays = 0): string {
  const at = zone.read() === 'utc' ? new Date(`${day}T00:00:00Z`) : new Date(`${day}T00:00:00`);
  // a day of UTC has 24 hours, whatever clocks do in the zone of the browser
  if (zone.read() === 'utc') at.setUTCDate(at.getUTCDate() + addDays);
  else at.setDate(at.getDate() + addDays);
  // the registry says what is wrong with a day that is none
  return Number.isNaN(at.getTime()) ? day : at.toISOString();
}

function queryOf({ from, to, email, event, key }: Choices): Query {
  // the last day is included
  const texts = { from: from && momentOf(from), to: to && momentOf(to, 1), email, key };
  const known = facts.auditEvents.find((each) => each === event);
  return {
    ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== undefined && value !== '')),
    ...(known !== undefined && { event: known }),
  };
}

export function AuditPage({ choices }: { readonly choices: Choices }) {
  useObserved(zone);
  const query = queryOf(choices);
  const key = `audit ${JSON.stringify(query)}`;
  const found = usePages<Entry>(key, (cursor, signal) =>
    call('GET /v1/admin/audit', { query: { ...query, ...(cursor !== undefined && { cursor }) } }, signal),
  );
  return (
    <>
      <h1>Audit</h1>
      <AuditFilter choices={choices} />
      <Listed pages={found} empty={<p class="empty">No record matches.</p>}>
        {(entries) => <AuditTable entries={entries} />}
      </Listed>
    </>
  );
}

function AuditFilter({ choices }: { readonly choices: Choices }) {
  const set = (name: string) => (value: string) => go(hrefOf('audit', { ...choices, [name]: value }));
  return (
    <div class="filters">
      <Chosen label="From" type="date" value={choices['from'] ?? ''} onChosen={set('from')} />
      <Chosen label="To" type="date" value={choices['to'] ?? ''} onChosen={set('to')} />
      <Chosen label="E-mail address" value={choices['email'] ?? ''} onChosen={set('email')} />
      <Select
        label="Event"
        value={choices['event'] ?? ''}
        onChange={set('event')}
        choices={[['', 'all'], ...facts.auditEvents.map((each) => [each, each] as const)]}
      />
      <Chosen label="API key, by name or fingerprint" value={choices['key'] ?? ''} onChosen={set('key')} />
    </div>
  );
}

function AuditTable({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    <Table label="Records of the audit" heads={['Time', 'Event', 'Who', 'From', 'Outcome', 'Details']}>
      {entries.map((entry) => (
        <tr key={entry.id}>
          <td>
            <Time at={entry.eventtime} />
          </td>
          <th scope="row">{entry.eventname}</th>
          <td>
            <Text>{entry.useridentity.email}</Text>
            {entry.useridentity.sessionContext.auth.keyName !== undefined && (
              <small>
                {' '}
                with key <Text>{entry.useridentity.sessionContext.auth.keyName}</Text>
              </small>
            )}
          </td>
          <td>
            <Text>{entry.sourceipaddress ?? ''}</Text>
          </td>
          <td>
            <span class={`state ${entry.outcome === 'done' ? 'good' : 'plain'}`}>{entry.outcome}</span>
          </td>
          <td>
            {entry.reason !== undefined && <Text>{entry.reason}</Text>}{' '}
            {Object.entries(entry.parameters ?? {}).map(([name, value]) => (
              <small key={name} class="parameter">
                <Text>{`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`}</Text>{' '}
              </small>
            ))}
          </td>
        </tr>
      ))}
    </Table>
  );
}
