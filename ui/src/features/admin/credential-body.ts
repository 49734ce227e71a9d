import type { CredentialBody } from '@/api/types';

export interface CredentialField {
  id: number;
  name: string;
  value: string;
}

export interface CredentialDraft {
  kind: 'value' | 'fields';
  value: string;
  fields: CredentialField[];
  category: string;
  provider: string;
  variant: string;
  description: string;
}

const KEEP = '***';

/** What to send. An empty secret keeps what is stored; the server never returns it. */
export function credentialBody(draft: CredentialDraft, stored: { payload: object | null } | undefined): Partial<CredentialBody> {
  const storedFields = new Set(Object.keys(stored?.payload ?? {}));
  const fields = draft.fields.filter((field) => field.name.trim() !== '');
  const payload = Object.fromEntries(fields.map(({ name, value }) => [name.trim(), value === '' && storedFields.has(name.trim()) ? KEEP : value]));
  const keepsValue = stored !== undefined && stored.payload === null && draft.value === '';
  return {
    ...(draft.kind === 'fields' ? { payload } : keepsValue ? {} : { value: draft.value }),
    category: draft.category.trim() || 'custom',
    ...(draft.provider.trim() ? { provider_key: draft.provider.trim() } : {}),
    ...(draft.variant.trim() ? { provider_variant: draft.variant.trim() } : {}),
    description: draft.description,
  };
}
