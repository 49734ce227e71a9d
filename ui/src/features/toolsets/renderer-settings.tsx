/** How the results of one tool are shown: the renderers of the package, and one that this installation puts before them. */
import { Button, Group, Modal, NumberInput, Select, Stack, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { keys } from '@/api/keys';
import { RENDERERS, toolsetKeys, toolsets, type RendererSetting, type ToolsetTool } from '@/api/unreleased';
import type { JsonObject } from '@/api/types';
import { useT } from '@/i18n';
import { Mono } from '@/parts/basics';
import { Editor } from '@/parts/editor';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { parseObject } from '@/parts/schema-form';
import { activeRenderer, overridePriority } from './permissions';
import { RendererChip } from './toolset-parts';

const TEMPLATES: Record<string, JsonObject> = {
  code: { content: '$return', language: 'auto' }, document: { content: '$return' }, html: { artifact: 'artifacts/result.html', data: '$return' }, frame: { url: '$return.url' }, table: { rows: '$return' },
  chart: { type: 'bar', rows: '$return' }, image: { file: '$return.file' }, diff: { before: '$return.before', after: '$return.after' }, terminal: { content: '$return.output' }, json: { value: '$return' },
};

function Form({ tool, onClose }: { tool: ToolsetTool; onClose: () => void }) {
  const t = useT();
  const own = tool.renderers.find((renderer) => renderer.override);
  const active = activeRenderer(tool.renderers);
  const [kind, setKind] = useState(own?.renderer ?? active?.renderer ?? 'json');
  const [priority, setPriority] = useState(own?.priority ?? overridePriority(tool.renderers));
  const [text, setText] = useState(JSON.stringify(own?.config ?? active?.config ?? TEMPLATES[kind] ?? {}, null, 2));
  const parsed = parseObject(text);
  const save = useAction((renderers: Omit<RendererSetting, 'override'>[]) => toolsets.setRenderers(tool.tool ?? tool.name, renderers), { invalidates: [toolsetKeys.all, keys.tools], done: () => { notify(t('common.saved')); onClose(); } });
  return (
    <form onSubmit={(event) => { event.preventDefault(); if ('value' in parsed) save.mutate([{ renderer: kind, priority, config: parsed.value }]); }}>
      <Stack>
        <Text c="dimmed">{t('toolsets.rendererHint')}</Text>
        <Table verticalSpacing={4}><Table.Tbody>{tool.renderers.toSorted((a, b) => b.priority - a.priority).map((renderer, index) => (
          <Table.Tr key={index}><Table.Td w={130}><RendererChip renderer={renderer} /></Table.Td><Table.Td w={60} ta="right"><Text c="dimmed">{renderer.priority}</Text></Table.Td><Table.Td style={{ overflowWrap: 'anywhere' }}><Text size="xs" c="dimmed"><Mono>{oneLine(renderer.config, 90)}</Mono></Text></Table.Td></Table.Tr>
        ))}</Table.Tbody></Table>
        <Group grow>
          <Select label={t('toolsets.renderer')} value={kind} allowDeselect={false} data={RENDERERS.map((value) => ({ value, label: t(`render.kind.${value}`) }))} onChange={(next) => { if (next) { setKind(next); setText(JSON.stringify(TEMPLATES[next] ?? {}, null, 2)); } }} />
          <NumberInput label={t('toolsets.priority')} description={t('toolsets.priorityHelp')} value={priority} onChange={(next) => setPriority(Number(next) || 0)} />
        </Group>
        <Editor language="json" label={t('impl.config')} value={text} onChange={setText} minHeight="7rem" problems={'error' in parsed ? [{ line: 1, message: parsed.error, severity: 'error' }] : []} />
        <Group justify="space-between">
          {own ? <Button variant="default" loading={save.isPending} onClick={() => save.mutate([])}>{t('toolsets.removeOverride')}</Button> : <span />}
          <Group gap="sm"><Button variant="default" onClick={onClose}>{t('common.cancel')}</Button><Button type="submit" loading={save.isPending} disabled={'error' in parsed}>{t('common.save')}</Button></Group>
        </Group>
      </Stack>
    </form>
  );
}

export function RendererSettings({ tool, onClose }: { tool: ToolsetTool | undefined; onClose: () => void }) {
  const t = useT();
  return <Modal opened={tool !== undefined} onClose={onClose} size="lg" title={<Text fw={600} size="md">{t('toolsets.rendererOf', { name: visibleText(tool?.name ?? '') })}</Text>}>{tool && <Form key={tool.name} tool={tool} onClose={onClose} />}</Modal>;
}
