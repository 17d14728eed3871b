/** A state store on which somebody else is quicker: for the compare-and-swap races. */
import type { StateStore } from '../../../src/store/store.ts';

/** Before the first `times` puts that `matches` accepts, `interfere` does what the other one does. */
export function racingState(
  state: StateStore,
  race: { readonly times: number; readonly matches: (id: string) => boolean; readonly interfere: (state: StateStore) => Promise<void> },
): StateStore {
  let left = race.times;
  return {
    ...state,
    put: async (entry, expected, signal) => {
      if (left > 0 && race.matches(entry.id)) {
        left -= 1;
        await race.interfere(state);
      }
      return state.put(entry, expected, signal);
    },
  };
}
