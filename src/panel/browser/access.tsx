/** Access: who may read which keys. Grants are added and removed; who sees a part, and what a person sees, is asked. */
import { useState } from 'preact/hooks';
import type { GrantView, ReaderView } from '../../api/access.ts';
import type { User } from '../../api/users.ts';
import { readingReasons, readsText } from '../../domain/access/reading-texts.ts';
import { printable } from '../../domain/printable.ts';
import { call } from './api.ts';
import { Chosen, Field, FormDialog, Select } from './form.tsx';
import { useLoaded, usePages } from './load.ts';
import { announce, type Column, Details, Listed, Shown, Table, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { may } from './session.ts';

export function AccessPage({ choices }: { readonly choices: Choices }) {
  const grants = usePages<GrantView>('grants', (cursor, signal) =>
    call('GET /v1/admin/grants', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
  const [open, setOpen] = useState<'add' | GrantView>();
  /** What is asked below is asked again after a change. */
  const [round, again] = useState(0);
  function close(): void {
    setOpen(undefined);
    grants.reload();
    again(round + 1);
  }
  const asked = { part: choices['part'] ?? '', person: choices['person'] ?? '', round };
  const mayChange = may('POST /v1/admin/grants');
  return (
    <>
      <div class="heading">
        <h1>Access</h1>
        {mayChange && (
          <button type="button" onClick={() => setOpen('add')}>
            Add grant
          </button>
        )}
      </div>
      <p>A grant lets someone read the keys of a bucket, or those with a prefix. Grants only add up; administrators read everything.</p>
      <Listed pages={grants} empty={<p class="empty">Nothing is granted.</p>}>
        {(items) => <GrantTable grants={items} remove={mayChange ? setOpen : undefined} />}
      </Listed>
      {may('GET /v1/admin/readers') && <Readers {...asked} />}
      {may('GET /v1/admin/users/{id}/access') && <PersonAccess {...asked} />}
      {open === 'add' && <AddDialog onClose={close} />}
      {typeof open === 'object' && <RemoveGrantDialog grant={open} onClose={close} />}
    </>
  );
}

interface GrantTableProps {
  readonly grants: readonly GrantView[];
  readonly label?: string;
  /** Absent: they are only shown. */
  readonly remove?: ((grant: GrantView) => void) | undefined;
}

function GrantTable({ grants, label = 'Grants', remove }: GrantTableProps) {
  const columns: readonly Column<GrantView>[] = [
    ['Who', ({ who }) => <Text>{who}</Text>, 'row'],
    ['May read', ({ where }) => <Text>{where === '*' ? 'every bucket' : where}</Text>],
    ['Granted by', ({ granted_by: by }) => <Text>{by}</Text>],
    ['Since', ({ created_at: since }) => <Time at={since} />],
  ];
  const act: Column<GrantView> = [
    'Actions',
    (grant) => (
      <button
        type="button"
        class="danger outline small"
        aria-label={`Remove ${printable(grant.who)} from ${printable(grant.where)}`}
        onClick={() => remove?.(grant)}
      >
        Remove
      </button>
    ),
  ];
  return (
    <Table
      label={label}
      columns={remove === undefined ? columns : [...columns, act]}
      rows={grants}
      keyOf={({ who, where }) => `${who} ${where}`}
    />
  );
}

function AddDialog({ onClose }: { readonly onClose: () => void }) {
  const [who, setWho] = useState('');
  const [where, setWhere] = useState('');
  async function add(): Promise<void> {
    const added = await call('POST /v1/admin/grants', { body: { who: who.trim(), where } });
    announce(`${added.who} may read ${added.where}.`);
    onClose();
  }
  const isWithinName = where.includes('/') && !where.endsWith('/');
  return (
    <FormDialog title="Add a grant" onClose={onClose} submit="Grant" onSubmit={add}>
      <Field
        label="Who"
        value={who}
        onChange={setWho}
        isRequired
        placeholder="group:analysts"
        hint="user:EMAIL, group:VALUE as the issuer states it, or everyone."
      />
      <Field
        label="May read"
        value={where}
        onChange={setWhere}
        isRequired
        placeholder="photos/2026/"
        hint="BUCKET, BUCKET/PREFIX, or * for every bucket."
      />
      {isWithinName && (
        <p class="advice">
          The prefix has no slash at its end: it is the beginning of names, and <Text>{`${where}…`}</Text> is granted too.
        </p>
      )}
    </FormDialog>
  );
}

function RemoveGrantDialog({ grant: { who, where }, onClose }: { readonly grant: GrantView; readonly onClose: () => void }) {
  async function remove(): Promise<void> {
    await call('POST /v1/admin/grants/remove', { body: { who, where } });
    announce('The grant is removed.');
    onClose();
  }
  return (
    <FormDialog title="Remove this grant?" onClose={onClose} submit="Remove" onSubmit={remove} isDanger>
      <p>
        <Text>{who}</Text> may not read <Text>{where}</Text> from the next request on, but for what another grant gives.
      </p>
    </FormDialog>
  );
}

interface AskedProps {
  readonly part: string;
  readonly person: string;
  readonly round: number;
}

/** Who sees a part. */
function Readers({ part, person, round }: AskedProps) {
  return (
    <section aria-labelledby="readers-heading">
      <h2 id="readers-heading">Who sees this?</h2>
      <div class="filters">
        <Chosen label="Bucket, or BUCKET/PREFIX" value={part} onChosen={(chosen) => go(hrefOf('access', { part: chosen, person }))} />
      </div>
      {part !== '' && <ReaderList part={part} round={round} />}
    </section>
  );
}

const readerColumns: readonly Column<ReaderView>[] = [
  ['Person', ({ email }) => <Text>{email}</Text>, 'row'],
  [
    'Because',
    ({ role, by }) => (role === 'admin' ? 'administrator' : <Text>{by.map(({ who, where }) => `${who} → ${where}`).join(', ')}</Text>),
  ],
];

function ReaderList({ part, round }: Omit<AskedProps, 'person'>) {
  const readers = usePages<ReaderView>(`readers ${round} ${part}`, (cursor, signal) =>
    call('GET /v1/admin/readers', { query: { where: part, ...(cursor !== undefined && { cursor }) } }, signal),
  );
  return (
    <Listed pages={readers} empty={<p class="empty">Nobody who has logged in.</p>}>
      {(items) => <Table label="Who sees this" columns={readerColumns} rows={items} keyOf={({ user_id: id }) => id} />}
    </Listed>
  );
}

/** More people are found on the page Users. */
const PEOPLE_MAX = 500;

/** What a person sees. */
function PersonAccess({ part, person, round }: AskedProps) {
  const { value } = useLoaded('people', (signal) => call('GET /v1/admin/users', { query: { limit: PEOPLE_MAX } }, signal));
  const people: readonly User[] = value?.items ?? [];
  return (
    <section aria-labelledby="person-heading">
      <h2 id="person-heading">What does this person see?</h2>
      <div class="filters">
        <Select
          label="Person"
          value={person}
          choices={[['', 'choose…'], ...people.map(({ id, email }) => [id, printable(email)] as const)]}
          onChange={(chosen) => go(hrefOf('access', { part, person: chosen }))}
        />
      </div>
      {person !== '' && <AccessOf person={person} round={round} />}
    </section>
  );
}

function AccessOf({ person, round }: Omit<AskedProps, 'part'>) {
  const loaded = useLoaded(`access of ${round} ${person}`, (signal) =>
    call('GET /v1/admin/users/{id}/access', { params: { id: person } }, signal),
  );
  return (
    <Shown loaded={loaded}>
      {({ reads, because, grants, groups, groups_left_out: isLeftOut }) => (
        <>
          <Details
            of={[
              ['Reads', <Text>{readsText(reads)}</Text>],
              ['Because', readingReasons[because]],
              ['Groups of the last login', <Text>{isLeftOut ? 'left out by the issuer: they are too many' : groups.join(', ')}</Text>],
            ]}
          />
          {grants.length > 0 && <GrantTable grants={grants} label="Grants of this person" />}
        </>
      )}
    </Shown>
  );
}
