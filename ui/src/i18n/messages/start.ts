export const start = {} as const satisfies Record<string, readonly [en: string, de: string]>;
