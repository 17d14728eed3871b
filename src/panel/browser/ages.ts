/** The ages by which objects are grouped, in words: what is in each, without what is younger. */
export const ageTexts: Readonly<Record<string, string>> = {
  '1d': 'less than a day',
  '7d': '1 to 7 days',
  '30d': '7 to 30 days',
  '90d': '30 to 90 days',
  '365d': '90 to 365 days',
  older: 'older than 365 days',
};
