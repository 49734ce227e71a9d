/** How the results of one tool are shown: its renderers, of which the one with the highest priority is used. */
import { ActionIcon, Button, Group, Modal, NumberInput, Select, Stack, Table, Text } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { keys } from '@/api/keys';
import { toolQuery } from '@/api/queries';
import { RENDERERS } from '@/api/rendering';
import { toolsetKeys, toolsets } from '@/api/toolsets';
import type { JsonObject, RendererSetting } from '@/api/types';
import { useT } from '@/i18n';
import { ErrorPanel, Mono } from '@/parts/basics';
import { Editor } from '@/parts/editor';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { shortName } from '@/parts/links';
import { Loading } from '@/parts/page';
import { parseObject } from '@/parts/schema-form';
import { activeRenderer, winningPriority } from './permissions';
import { RendererChip } from './toolset-parts';

const TEMPLATES: Record<string, JsonObject> = {
  code: { content: '$return', language: 'auto' }, document: { content: '$return' }, html: { artifact: 'artifacts/result.html', data: '$return' }, frame: { url: '$return.url' }, table: { data: '$return' },
  chart: { type: 'bar', data: '$return' }, image: { file: '$return.file' }, diff: { before: '$return.before', after: '$return.after' }, terminal: { content: '$return.output' }, json: { data: '$return' },
};

function Form({ target, renderers, onClose }: { target: string; renderers: RendererSetting[]; onClose: () => void }) {
  const t = useT();
  const active = activeRenderer(renderers);
  const [kind, setKind] = useState(active?.renderer ?? 'json');
  const [priority, setPriority] = useState(winningPriority(renderers));
  const [text, setText] = useState(JSON.stringify(active?.config ?? TEMPLATES[kind] ?? {}, null, 2));
  const parsed = parseObject(text);
  const save = useAction((next: RendererSetting[]) => toolsets.setRenderers(target, next), { invalidates: [toolsetKeys.all, keys.tools], done: () => { notify(t('common.saved')); onClose(); } });
  return (
    <form onSubmit={(event) => { event.preventDefault(); if ('value' in parsed) save.mutate([{ renderer: kind, priority, config: parsed.value }, ...renderers]); }}>
      <Stack>
        <Text c="dimmed">{t('toolsets.rendererHint')}</Text>
        <Table verticalSpacing={4}><Table.Tbody>{renderers.toSorted((a, b) => b.priority - a.priority).map((renderer, index) => (
          <Table.Tr key={index}>
            <Table.Td w={130}><RendererChip renderer={renderer.renderer} /></Table.Td><Table.Td w={60} ta="right"><Text c="dimmed">{renderer.priority}</Text></Table.Td>
            <Table.Td style={{ overflowWrap: 'anywhere' }}><Text size="xs" c="dimmed"><Mono>{oneLine(renderer.config, 90)}</Mono></Text></Table.Td>
            <Table.Td w={36}><ActionIcon size="sm" aria-label={`${t('common.remove')} ${renderer.renderer}`} loading={save.isPending} onClick={() => save.mutate(renderers.filter((each) => each !== renderer))}><IconX size={13} /></ActionIcon></Table.Td>
          </Table.Tr>
        ))}</Table.Tbody></Table>
        <Group grow align="flex-start">
          <Select label={t('toolsets.renderer')} value={kind} allowDeselect={false} data={RENDERERS.map((value) => ({ value, label: t(`render.kind.${value}`) }))} onChange={(next) => { if (next) { setKind(next); setText(JSON.stringify(TEMPLATES[next] ?? {}, null, 2)); } }} />
          <NumberInput label={t('toolsets.priority')} inputWrapperOrder={['label', 'input', 'description', 'error']} description={t('toolsets.priorityHelp')} value={priority} onChange={(next) => setPriority(Number(next) || 0)} />
        </Group>
        <Editor language="json" label={t('impl.config')} value={text} onChange={setText} minHeight="7rem" problems={'error' in parsed ? [{ line: 1, message: parsed.error, severity: 'error' }] : []} />
        <Group justify="flex-end" gap="sm"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" loading={save.isPending} disabled={'error' in parsed}>{t('common.save')}</Button></Group>
      </Stack>
    </form>
  );
}

export function RendererSettings({ target, onClose }: { target: string; onClose: () => void }) {
  const t = useT();
  const { data: tool, error } = useQuery(toolQuery(target));
  return (
    <Modal opened onClose={onClose} size="lg" title={<Text fw={600} size="md">{t('toolsets.rendererOf', { name: visibleText(shortName(target)) })}</Text>}>
      {error ? <ErrorPanel error={error} /> : tool ? <Form target={target} renderers={tool.renderers} onClose={onClose} /> : <Loading />}
    </Modal>
  );
}
