export const calls = {} as const satisfies Record<string, readonly [en: string, de: string]>;
