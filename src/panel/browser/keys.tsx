/** The person's API keys and, for administrators, all users' keys. A secret is shown once. */
import { useState } from 'preact/hooks';
import type { AnyApiKey, ApiKey } from '../../registry/contract/api-keys.ts';
import { printable, durationText } from '../../base/texts.ts';
import { call, type AnswerTo } from './api.ts';
import { facts } from './facts.ts';
import { AskedAct, Check, Field } from './form.tsx';
import { PAGE_MAX, useAnswer, type Loaded } from './load.ts';
import { announce, type Column, Listed, Tabs, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { endsSoon } from './rail.tsx';
import { may, session } from './session.ts';

export function KeysPage({ choices }: { readonly choices: Choices }) {
  const maySeeAll = may('GET /v1/admin/api-keys');
  const isAll = maySeeAll && choices['of'] === 'all';
  return (
    <>
      <h1>API keys</h1>
      {maySeeAll && (
        <Tabs
          label="Whose keys"
          of={[
            ['Mine', 'keys', {}, !isAll],
            ['All', 'keys', { of: 'all' }, isAll],
          ]}
        />
      )}
      {isAll ? <AllKeys choices={choices} /> : <OwnKeys />}
    </>
  );
}

function OwnKeys() {
  const keys = useAnswer('GET /v1/api-keys', {});
  return (
    <>
      {may('POST /v1/api-keys') && <CreateButton onCreated={keys.reload} />}
      <KeyTable
        label="Your API keys"
        keys={keys}
        empty="You have no API keys. Create one for each program, and name it after its purpose."
        revoke={({ id }) => call('DELETE /v1/api-keys/{id}', { params: { id } })}
      />
    </>
  );
}

/** All users' keys: whose they are, and which are unused. */
function AllKeys({ choices }: { readonly choices: Choices }) {
  const { email = '', unused_since: since = '' } = choices;
  const keys = useAnswer('GET /v1/admin/api-keys', {
    query: { limit: PAGE_MAX, ...(email !== '' && { email }), ...(since !== '' && { unused_since: since }) },
  });
  const set = (name: string) => (value: string) => go(hrefOf('keys', { ...choices, [name]: value }));
  return (
    <>
      <div class="filters">
        <Field label="E-mail address" value={email} onChosen={set('email')} />
        <Field label="Unused since (UTC)" type="date" value={since} onChosen={set('unused_since')} />
      </div>
      <KeyTable
        label="API keys of all users"
        keys={keys}
        empty={email + since === '' ? 'There are no API keys.' : 'No key matches.'}
        revoke={({ id }) => call('DELETE /v1/admin/api-keys/{id}', { params: { id } })}
      />
    </>
  );
}

type Key = ApiKey | AnyApiKey;

interface KeyTableProps {
  readonly label: string;
  readonly keys: Loaded<{ readonly items: readonly Key[]; readonly next?: string | undefined }>;
  readonly empty: string;
  readonly revoke: (key: Key) => Promise<unknown>;
}

function KeyTable({ label, keys, empty, revoke }: KeyTableProps) {
  const act = (key: Key) => revoke(key).then(() => announce('The key is revoked.'));
  const columns: readonly Column<Key>[] = [
    ['Name', ({ name }) => <Text>{name}</Text>, 'row'],
    ...(keys.value?.items.some((key) => 'user_id' in key) === true ? [['Owner', (key: Key) => <Owner of={key} />] as const] : []),
    ['Fingerprint', ({ fingerprint }) => <code>{fingerprint}</code>],
    ['Left', (key) => <Left of={key} />, 'number'],
    ['Created', ({ created_at: at }) => <Time at={at} />],
    ['Last used', ({ last_used_at: at }) => <Time at={at} />],
    ['May', ({ scopes }) => scopes.join(', ')],
    [
      'Actions',
      (key) => (
        <AskedAct
          text="Revoke"
          label={`Revoke ${printable(key.name)}`}
          title="Revoke this key?"
          act={() => act(key)}
          onClosed={keys.reload}
        >
          <p>
            Tally refuses programs that use “<Text>{key.name}</Text>” within 5 s. You cannot undo this.
          </p>
        </AskedAct>
      ),
    ],
  ];
  return <Listed loaded={keys} label={label} columns={columns} keyOf={({ id }) => id} empty={empty} />;
}

function Owner({ of }: { readonly of: Key }) {
  return (
    <>
      <Text>{of.user_email}</Text>
      {'user_id' in of && !of.user_email_verified && <small> (not verified)</small>}
      {'user_id' in of && of.owner_disabled && <small> (disabled)</small>}
    </>
  );
}

/** How long a key is still valid. It gets a colour only once a person has to act. */
function Left({ of }: { readonly of: ApiKey }) {
  if (of.status === 'EXPIRED') return <span class="state notable">expired</span>;
  const left = durationText(Date.parse(of.expires_at) - Date.now());
  return <span class={endsSoon(of) ? 'state notable' : undefined}>{left}</span>;
}

function CreateButton({ onCreated }: { readonly onCreated: () => void }) {
  // all keys may read
  const others = facts.keyScopes.filter((scope) => scope !== 'read' && session.read()?.scopes.includes(scope) === true);
  async function create({ name = '', days, ...chosen }: Choices) {
    const scopes = ['read' as const, ...others.filter((scope) => scope in chosen)];
    const created = await call('POST /v1/api-keys', { body: { name, expires_in_days: Number(days), scopes } });
    onCreated();
    return <Secret of={created} />;
  }
  return (
    <AskedAct text="Create key" look="" title="Create an API key" act={create}>
      <Field label="Name" name="name" isRequired hint="What the key is for, such as: nightly export, production." />
      <Field
        label="Days until it expires"
        name="days"
        type="number"
        value={String(facts.keyDays.usual)}
        isRequired
        hint={`1 to ${facts.keyDays.max}.`}
      />
      {others.length > 0 && (
        <fieldset>
          <legend>What it may do besides reading</legend>
          {others.map((scope) => (
            <Check key={scope} label={scope} name={scope} />
          ))}
        </fieldset>
      )}
    </AskedAct>
  );
}

/** Only this dialog holds the secret, which is gone when it closes. */
function Secret({ of: { key, secret } }: { readonly of: AnswerTo<'POST /v1/api-keys'> }) {
  const [note, setNote] = useState('');
  /** The secret never leaves this dialog, even if it cannot be copied. */
  async function copySecret(dialog: HTMLDialogElement | null): Promise<void> {
    try {
      await navigator.clipboard.writeText(secret);
      announce('The secret is copied.');
      dialog?.close();
    } catch {
      setNote('The browser does not allow copying. Select the secret above.');
    }
  }
  return (
    <>
      <p>
        The secret of “<Text>{key.name}</Text>” is shown only now. Copy it into a secret manager.
      </p>
      <pre tabIndex={0} class="secret">
        {secret}
      </pre>
      <p role="status">{note}</p>
      <button type="button" onClick={(event) => void copySecret(event.currentTarget.closest('dialog'))}>
        Copy and close
      </button>{' '}
    </>
  );
}
