/** Light or dark: as the system has it, or as the person chose. */
import { remembered } from './observed.ts';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

export const theme = remembered<Theme>('tally-theme', ['system', 'light', 'dark']);

/** Shows the page in the theme that was chosen, and in each that is chosen later. */
export function showTheme(): void {
  theme.watch(show);
  show();
}

function show(): void {
  document.documentElement.dataset['theme'] = theme.read();
}
