import { Button, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { agentKeys, agentQuery, agents } from '@/api/agents';
import { useMay } from '@/api/session';
import { useT } from '@/i18n';
import { ErrorPanel, PermissionNote } from '@/parts/basics';
import { useDraft } from '@/parts/draft';
import { notify, useAction } from '@/parts/feedback';
import { RestoredNote } from '@/parts/form-fields';
import { Content, Page } from '@/parts/page';
import { readSource } from '@/parts/source';
import { useUrlState } from '@/parts/url-state';
import { AgentEditor, write, type AgentDraft } from './agent-editor';
import { definitionOf, NEW_AGENT } from './definition';

export function NewAgentPage() {
  const t = useT();
  const navigate = useNavigate();
  const mayEdit = useMay('editor');
  const [url, setUrl] = useUrlState();
  const draft = useDraft<AgentDraft>('new-agent', { text: write(NEW_AGENT, 'yaml'), form: 'yaml' });
  const [failure, setFailure] = useState<unknown>();
  const original = useQuery({ ...agentQuery(url['from'] ?? ''), enabled: url['from'] !== undefined }).data;
  const { set } = draft;
  useEffect(() => {
    if (!original) return;
    set({ text: write({ ...definitionOf(original), slug: `${original.slug}-copy` }, 'yaml'), form: 'yaml' });
    setUrl({ from: undefined });
  }, [original, set, setUrl]);
  const source = readSource(draft.value.text, draft.value.form);
  const create = useAction(() => agents.create(source.doc), {
    invalidates: [agentKeys.all], failed: setFailure,
    done: (agent) => {
      draft.clear();
      notify(t('define.created', { name: agent.name }));
      void navigate({ to: '/agents/$ref' as never, params: { ref: agent.slug } as never });
    },
  });
  if (!mayEdit) return <Page title={t('agents.new')}><Content><PermissionNote needs="editor" /></Content></Page>;
  return (
    <Page title={t('agents.new')} primary={<Button loading={create.isPending} disabled={source.error !== undefined} onClick={() => create.mutate(undefined)}>{t('agents.create')}</Button>}>
      <Content>
        <Stack>
          <RestoredNote at={draft.restoredAt} onDiscard={draft.clear} />
          {Boolean(failure) && <ErrorPanel error={failure} />}
          <AgentEditor draft={draft.value} onChange={draft.set} isNew />
        </Stack>
      </Content>
    </Page>
  );
}
