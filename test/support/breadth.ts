/** True in `npm run test:long`, where tests play all that they can, and not what stands for it. */
export const isLong = process.env['TALLY_TEST_LONG'] === '1';

/** For what `npm run test:long` alone plays: elsewhere it is not declared, because a test that is skipped is one that did not run. */
export function onlyInLong<Declare extends (...test: never[]) => unknown>(declare: Declare): Declare {
  return isLong ? declare : ((() => undefined) as unknown as Declare);
}

/**
 * Pairs each case with a kind, for what is the same code whatever the kind: the kinds take turns, so that every case and every
 * kind is played. In `npm run test:long` each case is played with each kind.
 */
export function inTurns<Case, Kind>(cases: readonly Case[], kinds: readonly Kind[]): readonly (readonly [Case, Kind])[] {
  return cases.flatMap((each, place) =>
    kinds.filter((_, turn) => isLong || turn === place % kinds.length).map((kind) => [each, kind] as const),
  );
}

/** For a test of what is the same code whatever the kind: the kind that costs least. In `npm run test:long` each. */
export function oneOf<Kind>(kinds: readonly Kind[]): readonly Kind[] {
  return isLong ? kinds : kinds.slice(0, 1);
}
