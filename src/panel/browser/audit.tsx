/** The audit: who did what, one row for each act. */
import { type RequestTo, call } from './api.ts';
import { actorOf, actsOf, subjectOf, type Act } from './audit-acts.ts';
import { facts } from './facts.ts';
import { usePages } from './load.ts';
import { Chosen, Select } from './form.tsx';
import { useObserved } from './observed.ts';
import { type Column, Details, Listed, Table, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { numberText, timeText, zone } from './words.ts';

type Query = NonNullable<RequestTo<'GET /v1/admin/audit'>['query']>;
type Entry = Act['record'];

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
      <Listed pages={found} empty={<p class="empty">No act matches.</p>}>
        {(records) => <Table label="Acts of the audit" columns={columns} rows={actsOf(records)} keyOf={({ record }) => record.id} />}
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

const columns: readonly Column<Act>[] = [
  ['Time', ({ record }) => <Time at={record.eventtime} />],
  [
    'Act',
    ({ record, times }) => (
      <>
        {record.eventname}
        {times > 1 && <small class="quiet"> {numberText(times)} times</small>}
      </>
    ),
    'row',
  ],
  [
    'Of',
    ({ record }) => {
      const subject = subjectOf(record);
      return subject !== undefined && <Text>{subject}</Text>;
    },
  ],
  ['Who', ({ record }) => <Text>{actorOf(record)}</Text>],
  [
    'Outcome',
    ({ record: { outcome } }) => <span class={`state ${looks[outcome]}`}>{outcome === 'intended' ? 'no end is recorded' : outcome}</span>,
  ],
  ['Details', ({ record, beganAt }) => <Folded record={record} beganAt={beganAt} />],
];

/** An act without an end is one that runs, or whose process was killed. */
const looks = { done: 'good', failed: 'bad', intended: 'notable' } as const;

function Folded({ record, beganAt }: Pick<Act, 'record' | 'beganAt'>) {
  const inZone = useObserved(zone);
  const { eventtime, reason, sourceipaddress: address, useridentity, request_id: request, parameters = {} } = record;
  const { type, keyName, keyFingerprint } = useridentity.sessionContext.auth;
  const texts: readonly (readonly [name: string, text: string | undefined])[] = [
    ['Reason', reason],
    ['Began', timeText(beganAt, inZone)],
    ['Ended', record.outcome === 'intended' ? undefined : timeText(eventtime, inZone)],
    ['From', address],
    ['Authenticated by', keyName === undefined ? type : `${keyName} (${keyFingerprint ?? type})`],
    ...Object.entries(parameters).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const),
    ['Request', request],
  ];
  return (
    <details>
      <summary>
        Details<span class="unseen"> of {record.eventname}</span>
      </summary>
      <Details of={texts.map(([name, text]) => [name, text !== undefined && text !== '' && <Text>{text}</Text>])} />
    </details>
  );
}
