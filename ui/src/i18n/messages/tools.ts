export const tools = {} as const satisfies Record<string, readonly [en: string, de: string]>;
