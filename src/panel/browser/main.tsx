/** The panel: what administrators click and data engineers search. */
import { render } from 'preact';
import { Shell } from './shell.tsx';

const root = document.querySelector('#panel');
if (root !== null) render(<Shell />, root);
