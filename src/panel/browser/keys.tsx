/** API keys: those of the person, and for administrators those of all users. A secret is shown once. */
import { useState } from 'preact/hooks';
import type { AnyApiKey, ApiKey } from '../../api/api-keys.ts';
import { printable } from '../../domain/printable.ts';
import { call, type AnswerTo } from './api.ts';
import { facts } from './facts.ts';
import { AskedAct, Check, Chosen, Field, FormDialog, Opener } from './form.tsx';
import { usePages } from './load.ts';
import { announce, type Column, Dialog, Listed, Table, Tabs, Text, Time } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { endsSoon } from './rail.tsx';
import { may, session } from './session.ts';
import { durationText } from './words.ts';

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
  const keys = usePages<ApiKey>('own keys', (cursor, signal) =>
    call('GET /v1/api-keys', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
  return (
    <>
      <p class="actions">
        {may('POST /v1/api-keys') && (
          <Opener text="Create key" onClosed={keys.reload}>
            {(close) => <CreateDialog onClose={close} />}
          </Opener>
        )}
        <Opener text="A secret has leaked…" look="outline" onClosed={keys.reload}>
          {(close) => <LeakedDialog onClose={close} />}
        </Opener>
      </p>
      <Listed pages={keys} empty={<p class="empty">You have no key. Create one for each program, with a name that says what it is for.</p>}>
        {(items) => (
          <KeyTable
            label="Your API keys"
            keys={items}
            revoke={({ id }) => call('DELETE /v1/api-keys/{id}', { params: { id } })}
            onRevoked={keys.reload}
          />
        )}
      </Listed>
    </>
  );
}

/** The keys of all users: which are unused, and whose. */
function AllKeys({ choices }: { readonly choices: Choices }) {
  const { email = '', unused_since: since = '' } = choices;
  const query = { ...(email !== '' && { email }), ...(since !== '' && { unused_since: since }) };
  const keys = usePages<AnyApiKey>(`all keys ${JSON.stringify(query)}`, (cursor, signal) =>
    call('GET /v1/admin/api-keys', { query: { ...query, ...(cursor !== undefined && { cursor }) } }, signal),
  );
  const set = (name: string) => (value: string) => go(hrefOf('keys', { ...choices, [name]: value }));
  return (
    <>
      <div class="filters">
        <Chosen label="E-mail address" value={email} onChosen={set('email')} />
        <Chosen label="Unused since (UTC)" type="date" value={since} onChosen={set('unused_since')} />
      </div>
      <Listed
        pages={keys}
        empty={<p class="empty">{email + since === '' ? 'Nobody has made a key.' : 'No key is of this person, or unused for so long.'}</p>}
      >
        {(items) => (
          <KeyTable
            label="API keys of all users"
            keys={items}
            revoke={({ id }) => call('DELETE /v1/admin/api-keys/{id}', { params: { id } })}
            onRevoked={keys.reload}
          />
        )}
      </Listed>
    </>
  );
}

interface KeyTableProps<Key> {
  readonly label: string;
  readonly keys: readonly Key[];
  readonly revoke: (key: Key) => Promise<unknown>;
  readonly onRevoked: () => void;
}

function KeyTable<Key extends ApiKey | AnyApiKey>({ label, keys, revoke, onRevoked }: KeyTableProps<Key>) {
  async function act(key: Key): Promise<void> {
    await revoke(key);
    announce('The key is revoked.');
  }
  const columns: readonly Column<Key>[] = [
    ['Name', ({ name }) => <Text>{name}</Text>, 'row'],
    ...(keys.some((key) => 'user_id' in key) ? [['Owner', (key: Key) => <Owner of={key} />] as const] : []),
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
          onClosed={onRevoked}
        >
          <p>
            Programs that use “<Text>{key.name}</Text>” are refused within 5 s, and it cannot be undone.
          </p>
        </AskedAct>
      ),
    ],
  ];
  return <Table label={label} columns={columns} rows={keys} keyOf={({ id }) => id} />;
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
  const left = durationText((new Date(of.expires_at).getTime() - Date.now()) / 1_000);
  return <span class={endsSoon(of) ? 'state notable' : undefined}>{left}</span>;
}

function CreateDialog({ onClose }: { readonly onClose: () => void }) {
  const [created, setCreated] = useState<AnswerTo<'POST /v1/api-keys'>>();
  const [name, setName] = useState('');
  const [days, setDays] = useState(String(facts.keyDays.usual));
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set(['read']));
  // every key may read
  const others = facts.keyScopes.filter((scope) => scope !== 'read' && session.read()?.scopes.includes(scope) === true);
  async function create(): Promise<void> {
    const chosen = facts.keyScopes.filter((scope) => scopes.has(scope));
    setCreated(await call('POST /v1/api-keys', { body: { name, expires_in_days: Number(days), scopes: chosen } }));
  }
  if (created !== undefined) return <SecretDialog key="secret" created={created} onClose={onClose} />;
  return (
    <FormDialog title="Create an API key" onClose={onClose} submit="Create" onSubmit={create}>
      <Field label="Name" value={name} onChange={setName} isRequired hint="What the key is for, such as: nightly export, production." />
      <Field label="Days until it ends" type="number" value={days} onChange={setDays} isRequired hint={`1 to ${facts.keyDays.max}.`} />
      {others.length > 0 && (
        <fieldset>
          <legend>What it may do besides reading</legend>
          {others.map((scope) => (
            <Check
              key={scope}
              label={scope}
              isChecked={scopes.has(scope)}
              onChange={(isChecked) => setScopes(new Set(isChecked ? [...scopes, scope] : [...scopes].filter((each) => each !== scope)))}
            />
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

function LeakedDialog({ onClose }: { readonly onClose: () => void }) {
  const [secret, setSecret] = useState('');
  async function revoke(): Promise<void> {
    await call('POST /v1/api-keys/revoke', { body: { secret } });
    announce('If there was a key with this secret, it is revoked.');
    onClose();
  }
  return (
    <FormDialog title="Revoke a key by its secret" onClose={onClose} submit="Revoke" onSubmit={revoke} isDanger>
      <Field label="Secret" value={secret} onChange={setSecret} isRequired hint="Every process refuses the key within 5 s." />
    </FormDialog>
  );
}
