/** The panel: what administrators click and data engineers search. */
import { render } from 'preact';
import { loadAhead, loadPage } from './pages.tsx';
import { place } from './place.ts';
import { Shell } from './shell.tsx';
import './theme.ts';

// while the registry says who the person is; what fails is said where the page would be
loadPage(place.read().page).catch(() => undefined);

loadAhead();

const root = document.querySelector('#panel');
if (root !== null) render(<Shell />, root);
