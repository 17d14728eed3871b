/** The panel: what administrators click and data engineers search. */
import { render } from 'preact';
import { loadPage, Page } from './pages.tsx';
import { Announcements } from './parts.tsx';
import { pages, place } from './place.ts';
import { Shell } from './shell.tsx';

const here = place.read();
// until the registry has said who the person is; a failure is shown instead of the page
loadPage(here.page).catch(() => undefined);

/** Whoever is asked for consent has no session here. */
function Consent() {
  document.title = `${pages.consent.title} · Tally`;
  return (
    <main class="alone">
      <Page at={here} />
      <Announcements />
    </main>
  );
}

const root = document.querySelector('#panel');
if (root !== null) render(here.page === 'consent' ? <Consent /> : <Shell />, root);
