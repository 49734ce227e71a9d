export const govern = {} as const satisfies Record<string, readonly [en: string, de: string]>;
