/** People who have logged in, and who becomes an administrator. */
import { useState } from 'preact/hooks';
import type { GrantAnswer, User } from '../../api/users.ts';
import { printable } from '../../domain/printable.ts';
import { call } from './api.ts';
import { usePages } from './load.ts';
import { Act, Field, Form } from './form.tsx';
import { announce, Dialog, Listed, Table, Text, Time } from './parts.tsx';
import { session } from './session.ts';

export function UsersPage() {
  const users = usePages<User>('users', (cursor, signal) =>
    call('GET /v1/admin/users', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
  const grants = usePages<GrantAnswer>('grants', (cursor, signal) =>
    call('GET /v1/admin/grants', { query: cursor === undefined ? {} : { cursor } }, signal),
  );
  const [isGranting, setGranting] = useState(false);
  return (
    <>
      <div class="heading">
        <h1>Users</h1>
        <button type="button" onClick={() => setGranting(true)}>
          Make an administrator…
        </button>
      </div>
      <Listed pages={users} empty={<p class="empty">No person has logged in.</p>}>
        {(items) => <UserTable users={items} onChanged={users.reload} />}
      </Listed>
      <h2>Grants that wait for a login</h2>
      <Listed pages={grants} empty={<p class="empty">No grant waits.</p>}>
        {(items) => <GrantTable grants={items} onChanged={grants.reload} />}
      </Listed>
      {isGranting && (
        <GrantDialog
          onClose={() => {
            setGranting(false);
            users.reload();
            grants.reload();
          }}
        />
      )}
    </>
  );
}

function UserTable({ users, onChanged }: { readonly users: readonly User[]; readonly onChanged: () => void }) {
  const own = session.read()?.user.id;
  return (
    <Table label="Users" heads={['E-mail', 'Role', 'Last login', 'First login', 'Issuer', 'State', 'Actions']}>
      {users.map((user) => (
        <tr key={user.id}>
          <th scope="row">
            <Text>{user.email}</Text>
            {user.id === own && <small> (you)</small>}
            {!user.email_verified && <small> (not verified)</small>}
          </th>
          <td>
            {user.role}
            {user.role_source !== 'none' && <small> by a {user.role_source}</small>}
          </td>
          <td>
            <Time at={user.last_login_at} />
          </td>
          <td>
            <Time at={user.created_at} />
          </td>
          <td>
            <Text>{user.issuer}</Text>
          </td>
          <td>
            {user.disabled_at === undefined
              ? 'enabled'
              : [
                  <span key="state" class="state notable">
                    disabled
                  </span>,
                  ' ',
                  <Time key="at" at={user.disabled_at} />,
                ]}
          </td>
          <td>
            <UserAct user={user} onChanged={onChanged} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function UserAct({ user: { id, email, disabled_at: disabledAt }, onChanged }: { readonly user: User; readonly onChanged: () => void }) {
  const [isAsked, setAsked] = useState(false);
  async function disable(): Promise<void> {
    await call('POST /v1/admin/users/{id}/disable', { params: { id } });
    announce('The user is disabled.');
    setAsked(false);
    onChanged();
  }
  async function enable(): Promise<void> {
    await call('POST /v1/admin/users/{id}/enable', { params: { id } });
    announce('The user is enabled.');
    onChanged();
  }
  if (disabledAt !== undefined) return <Act act={enable}>Enable</Act>;
  return (
    <>
      <button type="button" class="danger outline small" aria-label={`Disable ${printable(email)}`} onClick={() => setAsked(true)}>
        Disable
      </button>
      {isAsked && (
        <Dialog title="Disable this user?" onClose={() => setAsked(false)}>
          <Form submit="Disable" onSubmit={disable} onCancel={() => setAsked(false)} isDanger>
            <p>
              Sessions of <Text>{email}</Text> are refused at once, and API keys within 5 s.
            </p>
          </Form>
        </Dialog>
      )}
    </>
  );
}

function GrantTable({ grants, onChanged }: { readonly grants: readonly GrantAnswer[]; readonly onChanged: () => void }) {
  return (
    <Table label="Grants that wait for a login" heads={['Person', 'Granted by', 'Granted', 'Ends', 'Actions']}>
      {grants.map((grant) => (
        <tr key={grant.email ?? grant.sub}>
          <th scope="row">
            <Text>{grant.email ?? grant.sub ?? ''}</Text>
          </th>
          <td>
            <Text>{grant.granted_by}</Text>
          </td>
          <td>
            <Time at={grant.created_at} />
          </td>
          <td>
            <Time at={grant.expires_at} />
          </td>
          <td>
            <Act act={() => withdraw(grant, onChanged)}>Withdraw</Act>
          </td>
        </tr>
      ))}
    </Table>
  );
}

async function withdraw({ email, sub = '' }: GrantAnswer, onChanged: () => void): Promise<void> {
  await call('POST /v1/admin/grants/withdraw', { body: email === undefined ? { sub } : { email } });
  announce('The grant is withdrawn.');
  onChanged();
}

function GrantDialog({ onClose }: { readonly onClose: () => void }) {
  const [email, setEmail] = useState('');
  async function grant(): Promise<void> {
    const granted = await call('POST /v1/admin/grants', { body: { email: email.trim() } });
    announce(
      granted.user_id === undefined ? 'It counts at the first login of the person, within 7 days.' : 'The person is an administrator now.',
    );
    onClose();
  }
  return (
    <Dialog title="Make an administrator" onClose={onClose}>
      <Form submit="Grant" onSubmit={grant} onCancel={onClose}>
        <Field
          label="E-mail address"
          type="email"
          value={email}
          onChange={setEmail}
          isRequired
          hint="The issuer must have verified it. It counts at once, and for a person who has not logged in yet at the first login, within 7 days."
        />
      </Form>
    </Dialog>
  );
}
