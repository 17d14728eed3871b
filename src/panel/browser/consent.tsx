/** Where a person permits a program to act for them, or refuses it. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, type AnswerTo } from './api.ts';
import { Form } from './form.tsx';
import { useAnswer } from './load.ts';
import { CopyButton, Details, Shown, Text } from './parts.tsx';

type Decided = AnswerTo<'POST /login/consent'> & { readonly isAllowed: boolean };

export function ConsentPage() {
  const loaded = useAnswer('GET /login/consent', {});
  const [decided, setDecided] = useState<Decided>();
  async function decide(login: string, allow: boolean): Promise<void> {
    const answer = await call('POST /login/consent', { body: { login, allow } });
    setDecided({ ...answer, isAllowed: allow });
    if (answer.redirect !== undefined) location.assign(answer.redirect);
  }
  return (
    <Shown loaded={loaded}>
      {({ login, user, flow, machine }) => (
        <>
          <h1>Log in to Tally on {machine === undefined ? 'a program' : <Text>{machine}</Text>}?</h1>
          <p>
            A program asks to use Tally with your rights. Allow it only if you have just started this login yourself
            {flow === 'paste' ? ', in a terminal or a notebook of yours' : ' on this machine'}.
          </p>
          <Details
            of={[
              ['You are', <Text>{`${user.email}${user.email_verified ? '' : ' (not verified)'}`}</Text>],
              ['User id', <code>{user.id}</code>],
              ['Machine', machine === undefined ? 'not named' : <Text>{machine}</Text>],
            ]}
          />
          {decided === undefined ? (
            <div class="actions">
              <Form submit="Allow" onSubmit={() => decide(login, true)} />
              <Form submit="Refuse" look="outline" onSubmit={() => decide(login, false)} />
            </div>
          ) : (
            <End of={decided} />
          )}
        </>
      )}
    </Shown>
  );
}

/** The code that a person copies, or what they need not wait for. */
function End({ of: { code, isAllowed } }: { readonly of: Decided }) {
  const shown = useRef<HTMLOutputElement>(null);
  useLayoutEffect(() => shown.current?.focus(), []);
  if (code === undefined)
    return (
      <p role="status">
        {isAllowed ? 'You can close this page when the program says so.' : 'The login was refused. You can close this page.'}
      </p>
    );
  return (
    <>
      <p role="status">Copy this code into the program that waits for it. It is valid for one minute. Give it to no other person.</p>
      <output ref={shown} tabIndex={0} class="secret" aria-label="Login code">
        {code}
      </output>
      <CopyButton copied={code}>Copy the code</CopyButton>
    </>
  );
}
