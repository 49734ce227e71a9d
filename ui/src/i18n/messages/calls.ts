export const calls = {
  'calls.time': ['Time', 'Zeit'],
  'calls.tool': ['Tool', 'Tool'],
  'calls.caller': ['Caller', 'Aufrufer'],
  'calls.duration': ['Duration', 'Dauer'],
  'calls.arguments': ['Arguments', 'Argumente'],
} as const satisfies Record<string, readonly [en: string, de: string]>;
