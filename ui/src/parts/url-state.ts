/** State that lives in the address: filters, tabs, the opened drawer, time ranges. */
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

export type UrlState = Record<string, string | undefined>;
export type SetUrlState = (patch: UrlState, options?: { push?: boolean }) => void;

/** Plain strings in the query, without the JSON notation that the router would use. */
export function parseSearch(text: string): UrlState {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== '') params.set(key, String(value));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

export function useUrlState(): [UrlState, SetUrlState] {
  const search: UrlState = useSearch({ strict: false });
  const navigate = useNavigate();
  const set = useCallback<SetUrlState>(
    (patch, options) => {
      void navigate({
        to: '.',
        search: ((previous: UrlState) => ({ ...previous, ...patch })) as never,
        replace: options?.push !== true,
      });
    },
    [navigate],
  );
  return [search, set];
}

/** A list in one parameter: `status=draft,published`. */
export function readList(value: string | undefined): string[] {
  return value === undefined || value === '' ? [] : value.split(',');
}

export function writeList(values: string[]): string | undefined {
  return values.length === 0 ? undefined : values.join(',');
}
