/** API keys: those of the person, and for administrators those of all users. A secret is shown once. */
import { useState } from 'preact/hooks';
import type { AnyApiKey, ApiKey } from '../../registry/contract/api-keys.ts';
import { printable } from '../../base/printable.ts';
import { durationText } from '../../base/texts.ts';
import { call, type AnswerTo } from './api.ts';
import { facts } from './facts.ts';
import { AskedAct, Check, Field, FormDialog, Opener } from './form.tsx';
import { usePages, type Pages } from './load.ts';
import { announce, type Column, Dialog, Listed, Tabs, Text, Time } from './parts.tsx';
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
  const keys = usePages('GET /v1/api-keys', {});
  return (
    <>
      <p class="actions">
        {may('POST /v1/api-keys') && (
          <Opener text="Create key">{(close) => <CreateDialog onCreated={keys.reload} onClose={close} />}</Opener>
        )}
        <AskedAct
          text="A secret has leaked…"
          look="danger outline"
          title="Revoke a key by its secret"
          submit="Revoke"
          act={revokeLeaked}
          onClosed={keys.reload}
        >
          <Field label="Secret" name="secret" isRequired hint="Every process refuses the key within 5 s." />
        </AskedAct>
      </p>
      <KeyTable
        label="Your API keys"
        keys={keys}
        empty="You have no key. Create one for each program, with a name that says what it is for."
        revoke={({ id }) => call('DELETE /v1/api-keys/{id}', { params: { id } })}
      />
    </>
  );
}

async function revokeLeaked({ secret = '' }: Choices): Promise<void> {
  await call('POST /v1/api-keys/revoke', { body: { secret } });
  announce('If there was a key with this secret, it is revoked.');
}

/** The keys of all users: which are unused, and whose. */
function AllKeys({ choices }: { readonly choices: Choices }) {
  const { email = '', unused_since: since = '' } = choices;
  const keys = usePages('GET /v1/admin/api-keys', {
    query: { ...(email !== '' && { email }), ...(since !== '' && { unused_since: since }) },
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
        empty={email + since === '' ? 'Nobody has made a key.' : 'No key is of this person, or unused for so long.'}
        revoke={({ id }) => call('DELETE /v1/admin/api-keys/{id}', { params: { id } })}
      />
    </>
  );
}

interface KeyTableProps<Key> {
  readonly label: string;
  readonly keys: Pages<Key>;
  readonly empty: string;
  readonly revoke: (key: Key) => Promise<unknown>;
}

function KeyTable<Key extends ApiKey | AnyApiKey>({ label, keys, empty, revoke }: KeyTableProps<Key>) {
  const act = (key: Key) => revoke(key).then(() => announce('The key is revoked.'));
  const columns: readonly Column<Key>[] = [
    ['Name', ({ name }) => <Text>{name}</Text>, 'row'],
    ...(keys.items?.some((key) => 'user_id' in key) === true ? [['Owner', (key: Key) => <Owner of={key} />] as const] : []),
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
          submit="Revoke"
          act={() => act(key)}
          onClosed={keys.reload}
        >
          <p>
            Programs that use “<Text>{key.name}</Text>” are refused within 5 s, and it cannot be undone.
          </p>
        </AskedAct>
      ),
    ],
  ];
  return <Listed pages={keys} label={label} columns={columns} keyOf={({ id }) => id} empty={empty} />;
}

function Owner({ of }: { readonly of: ApiKey | AnyApiKey }) {
  return (
    <>
      <Text>{of.user_email}</Text>
      {'user_id' in of && !of.user_email_verified && <small> (not verified)</small>}
      {'user_id' in of && of.owner_disabled && <small> (disabled)</small>}
    </>
  );
}

/** How long a key has left: it has a colour only once a person has to do something. */
function Left({ of }: { readonly of: ApiKey }) {
  if (of.status === 'EXPIRED') return <span class="state notable">expired</span>;
  const left = durationText(Date.parse(of.expires_at) - Date.now());
  return <span class={endsSoon(of) ? 'state notable' : undefined}>{left}</span>;
}

function CreateDialog({ onCreated, onClose }: { readonly onCreated: () => void; readonly onClose: () => void }) {
  const [created, setCreated] = useState<AnswerTo<'POST /v1/api-keys'>>();
  // every key may read
  const others = facts.keyScopes.filter((scope) => scope !== 'read' && session.read()?.scopes.includes(scope) === true);
  async function create({ name = '', days, ...chosen }: Choices): Promise<void> {
    const scopes = ['read' as const, ...others.filter((scope) => scope in chosen)];
    setCreated(await call('POST /v1/api-keys', { body: { name, expires_in_days: Number(days), scopes } }));
    onCreated();
  }
  if (created !== undefined) return <SecretDialog key="secret" created={created} onClose={onClose} />;
  return (
    <FormDialog title="Create an API key" onClose={onClose} submit="Create" onSubmit={create}>
      <Field label="Name" name="name" isRequired hint="What the key is for, such as: nightly export, production." />
      <Field
        label="Days until it ends"
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
    </FormDialog>
  );
}

interface SecretProps {
  readonly created: AnswerTo<'POST /v1/api-keys'>;
  readonly onClose: () => void;
}

/** The secret is in the memory of this dialog only, and is gone when it is closed. */
function SecretDialog({ created: { key, secret }, onClose }: SecretProps) {
  const [note, setNote] = useState('');
  /** Nothing outside of this dialog gets to know the secret, where it cannot be copied either. */
  async function copySecret(): Promise<void> {
    try {
      await navigator.clipboard.writeText(secret);
      setNote('Copied.');
    } catch {
      setNote('The browser does not permit copying: select the secret above.');
    }
  }
  return (
    <Dialog title="The secret of the key" onClose={onClose}>
      <p>
        This is the only time that the secret of “<Text>{key.name}</Text>” is shown. Copy it into a secret store now.
      </p>
      <pre tabIndex={0} class="secret">
        {secret}
      </pre>
      <p role="status">{note}</p>
      <div class="actions">
        <button type="button" onClick={() => void copySecret()}>
          Copy
        </button>
        <button type="button" class="outline" onClick={onClose}>
          I have copied it
        </button>
      </div>
    </Dialog>
  );
}
