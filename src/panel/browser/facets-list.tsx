export function Facets(_props: { readonly search: object }) {
  return null;
}
