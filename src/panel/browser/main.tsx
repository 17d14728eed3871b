/** The panel: what administrators click and data engineers search. */
import { render } from 'preact';
import { loadPage } from './pages.tsx';
import { place } from './place.ts';
import { Shell } from './shell.tsx';

// until the registry has said who the person is; a failure is shown instead of the page
loadPage(place.read().page).catch(() => undefined);

const root = document.querySelector('#panel');
if (root !== null) render(<Shell />, root);
