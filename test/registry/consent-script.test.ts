/** The script of the consent page, run on the few parts of a browser that it uses. */
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { consentPage } from '../../src/registry/login-routes.ts';

const page = consentPage({
  emailVerified: true,
  userId: '0aB1cD2eF3gH4iJ5kL6mN7',
  email: 'alice@example.com',
  flow: 'client',
  machine: 'laptop',
  token: 'the-token',
});
const script = /<script>([^]*)<\/script>/.exec(page)?.[1] ?? '';

type Listener = () => unknown;

/** A part of the page. */
function element(dataset: Record<string, string> = {}) {
  const listeners: Listener[] = [];
  return {
    dataset,
    disabled: false,
    textContent: '',
    addEventListener: (_name: string, listener: Listener) => void listeners.push(listener),
    click: async () => {
      for (const listener of listeners) await listener();
    },
  };
}

function open(
  answer: () => { readonly ok: boolean; readonly body: object },
  writeText: (text: string) => Promise<void> = async () => undefined,
) {
  const parts = {
    main: element({ login: 'the-token' }),
    status: element(),
    allow: element({ allow: 'true' }),
    refuse: element({ allow: 'false' }),
    actions: element(),
    paste: element(),
    output: element(),
    copy: element(),
  };
  const bySelector: Readonly<Record<string, unknown>> = {
    main: parts.main,
    '[role=status]': parts.status,
    '.actions': parts.actions,
    '#paste': parts.paste,
    output: parts.output,
    '#copy': parts.copy,
  };
  const sent: { readonly url: string; readonly init: { readonly headers: object; readonly body: string } }[] = [];
  const visited: string[] = [];
  runInNewContext(script, {
    URL,
    document: {
      querySelector: (selector: string) => bySelector[selector],
      querySelectorAll: () => [parts.allow, parts.refuse],
    },
    location: { assign: (url: string) => void visited.push(url) },
    navigator: { clipboard: { writeText } },
    fetch: async (url: string, init: (typeof sent)[number]['init']) => {
      sent.push({ url, init });
      const { ok, body } = answer();
      return { ok, json: async () => body };
    },
  });
  return { ...parts, sent, visited };
}

describe('the consent page', () => {
  it.each(['https://evil.example/', 'javascript:alert(1)', 'http://127.0.0.1.evil.example/'])('never goes to %s', async (redirect) => {
    const opened = open(() => ({ ok: true, body: { redirect } }));
    await opened.allow.click();
    expect(opened.visited).toEqual([]);
  });

  it('says so where nothing can be copied for the person', async () => {
    const opened = open(
      () => ({ ok: true, body: { code: 'abc' } }),
      () => Promise.reject(new Error('not permitted')),
    );
    await opened.copy.click();
    expect(opened.status.textContent).toContain('Select the code');
  });

  it('shows why the registry refuses', async () => {
    const opened = open(() => ({ ok: false, body: { detail: 'this login has ended' } }));
    await opened.refuse.click();
    expect(opened.sent[0]?.init.body).toBe('{"login":"the-token","allow":false}');
    expect(opened.status.textContent).toBe('this login has ended');
  });

  it('can be tried again when the registry cannot be reached', async () => {
    const opened = open(() => {
      throw new Error('offline');
    });
    await opened.allow.click();
    expect([opened.allow.disabled, opened.status.textContent]).toEqual([false, 'The registry cannot be reached. Try again.']);
  });
});
