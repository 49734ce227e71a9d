import { MantineProvider } from '@mantine/core';
import type { WidgetProps } from '@rjsf/utils';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { toolListQuery } from '@/api/queries';
import { I18nProvider } from '@/i18n';
import { toolLists, ToolListWidget } from './tool-list';

const SCHEMA = { type: 'object', properties: { tools: { type: 'array', title: 'Tools of it', format: 'tool_list', items: { type: 'string' } }, names: { type: 'array', items: { type: 'string' } }, one: { type: 'string', format: 'tool_list' } }, required: ['tools'] };

afterEach(() => { cleanup(); localStorage.clear(); });

it('finds the fields that are lists of tools', () => {
  expect(toolLists(SCHEMA)).toEqual({ tools: { 'ui:widget': 'tool_list' } });
  expect(toolLists({ type: 'object' })).toEqual({});
});

it('shows the tool picker for them', () => {
  localStorage.setItem('haft.language', 'en');
  const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY, retry: false } } });
  queries.setQueryData(toolListQuery.queryKey, { pages: [{ tools: [], total: 0, failed: 0, next: null }], pageParams: [null] });
  const change = vi.fn<(value: unknown) => void>();
  render(<MantineProvider><I18nProvider><QueryClientProvider client={queries}><ToolListWidget {...({ label: 'Tools of it', schema: SCHEMA.properties.tools, value: ['web:*', 'fetch'], onChange: change } as unknown as WidgetProps)} /></QueryClientProvider></I18nProvider></MantineProvider>);
  expect(screen.getByRole('group', { name: 'Tools of it' })).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'Remove fetch' }));
  expect(change).toHaveBeenLastCalledWith(['web:*']);
});
