export interface Heap<Item> {
  first(): Item | undefined;
  push(item: Item): void;
  pop(): Item | undefined;
}

/** A binary heap: the item that comes before all others is on top. */
export function createHeap<Item>(isBefore: (a: Item, b: Item) => boolean): Heap<Item> {
  const items: Item[] = [];

  /** Puts the item where the free place is, or higher. */
  function rise(item: Item, place: number): void {
    let at = place;
    for (let parentAt = (at - 1) >> 1; at > 0 && isBefore(item, items[parentAt]!); parentAt = (at - 1) >> 1) {
      items[at] = items[parentAt]!;
      at = parentAt;
    }
    items[at] = item;
  }

  /** Puts the item at the top, or lower. */
  function sink(item: Item): void {
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && isBefore(items[child + 1]!, items[child]!)) child += 1;
      if (!isBefore(items[child]!, item)) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }

  return {
    first: () => items[0],
    push: (item) => rise(item, items.length),
    pop() {
      const [top] = items;
      const last = items.pop();
      if (last !== undefined && items.length > 0) sink(last);
      return top;
    },
  };
}
