/**
 * The pages of the login. They are complete without another request; their one script and one style are permitted by their
 * hashes, and every text from outside is escaped.
 */
import { createHash } from 'node:crypto';
import type { Problem } from '../api/problem.ts';
import type { Consent } from '../pipeline/identity/logins.ts';

/** A piece of HTML, as opposed to a text that must be escaped. */
interface Html {
  readonly html: string;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** HTML of a template: every inserted text is escaped. It is not called html, because the formatter would change the text then, and with it the hashes. */
function markup(parts: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  const inserted = values.map((value) => {
    if (typeof value === 'string') return value.replaceAll(/[&<>"']/g, (sign) => ENTITIES[sign] ?? '');
    return 'html' in value ? value.html : value.map((each) => each.html).join('');
  });
  return { html: parts.map((part, index) => `${part}${inserted[index] ?? ''}`).join('') };
}

const STYLE = `
:root { color-scheme: light dark; --text: #1a1a1a; --back: #ffffff; --line: #6b6b6b; --main: #0b57d0; --on-main: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --back: #16181c; --line: #9a9a9a; --main: #8ab4f8; --on-main: #10131a; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); }
main { max-width: 32rem; margin: 2rem auto; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; }
dt { color: var(--text); opacity: .8; } dd { margin: 0; font-weight: 600; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem; }
button { font: inherit; min-height: 2.75rem; padding: .5rem 1.25rem; border: 1px solid var(--line); border-radius: .4rem; background: transparent; color: inherit; cursor: pointer; }
button.main { background: var(--main); border-color: var(--main); color: var(--on-main); }
button:focus-visible, output:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
button:disabled { opacity: .6; cursor: default; }
output, code { font-family: ui-monospace, monospace; }
output { display: block; margin: 1rem 0; padding: .75rem; border: 1px solid var(--line); border-radius: .4rem; user-select: all; }
[hidden] { display: none; }
`;

const SCRIPT = `
const main = document.querySelector('main');
const status = document.querySelector('[role=status]');
const buttons = [...document.querySelectorAll('button[data-allow]')];
const report = (text) => { status.textContent = text; };
async function decide(allow) {
  for (const button of buttons) button.disabled = true;
  report('One moment…');
  try {
    const answer = await fetch('/login/consent', {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': 'application/json', 'x-tally-csrf': '1' },
      body: JSON.stringify({ login: main.dataset.login, allow }),
    });
    const body = await answer.json();
    if (!answer.ok) return report(body.detail);
    const target = body.redirect ? new URL(body.redirect) : undefined;
    if (target && target.protocol === 'http:' && ['127.0.0.1', '[::1]'].includes(target.hostname)) {
      report(allow ? 'You are logged in. You can close this page when the program says so.' : 'The login was refused.');
      return location.assign(target.href);
    }
    document.querySelector('.actions').hidden = true;
    if (body.code) {
      document.querySelector('#paste').hidden = false;
      const output = document.querySelector('output');
      output.textContent = body.code;
      output.focus();
      return report('The code is shown below. It is valid for one minute.');
    }
    report('The login was refused. You can close this page.');
  } catch {
    for (const button of buttons) button.disabled = false;
    report('The registry cannot be reached. Try again.');
  }
}
for (const button of buttons) button.addEventListener('click', () => decide(button.dataset.allow === 'true'));
document.querySelector('#copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText(document.querySelector('output').textContent);
    report('The code was copied.');
  } catch {
    report('Select the code and copy it.');
  }
});
`;

function sourceOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** The headers of every page. */
export const pageHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    `script-src ${sourceOf(SCRIPT)}`,
    `style-src ${sourceOf(STYLE)}`,
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

export const PAGE_TYPE = 'text/html; charset=utf-8';

interface Page {
  readonly title: string;
  readonly body: Html;
  readonly script?: Html;
}

// as a whole, because the hash is of everything between the tags
const styleElement: Html = { html: `<style>${STYLE}</style>` };
const scriptElement: Html = { html: `<script>${SCRIPT}</script>` };

function pageOf({ title, body, script = markup`` }: Page): string {
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Tally</title>
${styleElement}
</head>
<body>
${body}
${script}
</body>
</html>
`.html;
}

/** The page on which a person permits a client to act for them. */
export function consentPage({ email, emailVerified, userId, flow, machine, token }: Consent): string {
  const where = machine === undefined ? 'a program' : machine;
  const body = markup`<main data-login="${token}">
    <h1>Log in to Tally on ${where}?</h1>
    <p>
      A program asks to use Tally with your rights. Allow it only if you have just started this login
      yourself${flow === 'paste' ? ', in a terminal or a notebook of yours' : ' on this machine'}.
    </p>
    <dl>
      <dt>You are</dt>
      <dd>${email}${emailVerified ? '' : ' (not verified)'}</dd>
      <dt>User id</dt>
      <dd>${userId}</dd>
      <dt>Machine</dt>
      <dd>${machine ?? 'not named'}</dd>
    </dl>
    <noscript><p>This page needs JavaScript.</p></noscript>
    <div class="actions">
      <button type="button" class="main" data-allow="true">Allow</button><button type="button" data-allow="false">Refuse</button>
    </div>
    <p role="status" aria-live="polite"></p>
    <section id="paste" hidden>
      <p>Copy this code into the program that waits for it. Give it to no other person.</p>
      <output tabindex="0" aria-label="Login code"></output>
      <button type="button" id="copy">Copy the code</button>
    </section>
  </main>`;
  return pageOf({ title: 'Log in', body, script: scriptElement });
}

/** What a person sees when a login fails. */
export function problemPage({ title, detail, code, advice }: Problem): string {
  const body = markup`<main>
    <h1>The login did not succeed</h1>
    <p>${detail}.</p>
    ${advice === undefined ? markup`` : markup`<p>${advice}</p>`}
    <p>You can close this page and begin the login again.</p>
    <p>
      <small>${title}, <code>${code}</code></small>
    </p>
  </main>`;
  return pageOf({ title: 'Login failed', body });
}
