/** The saved examples of a tool: stored on the server, shared, and runnable as tests. */
import { Button, Checkbox, Group, Popover, Stack, Text, TextInput, Tooltip } from '@mantine/core';
import { IconDeviceFloppy, IconTestPipe, IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { examples as actions } from '@/api/actions';
import { keys } from '@/api/keys';
import { examplesQuery, toolRef } from '@/api/queries';
import { useMay } from '@/api/session';
import type { ToolExample } from '@/api/types';
import type { Json, JsonObject, Tool } from '@/api/types';
import { useT } from '@/i18n';
import { notify, useAction } from '@/parts/feedback';
import { oneLine, visibleText } from '@/parts/format';
import { StatusBadge } from '@/parts/status';

interface ExamplesProps {
  tool: Tool;
  args: JsonObject;
  /** The value of the last successful run, which an example can expect. */
  result: Json | undefined;
  onChoose: (args: JsonObject) => void;
}

function SaveForm({ tool, args, result, onDone }: Omit<ExamplesProps, 'onChoose'> & { onDone: () => void }) {
  const t = useT();
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [expects, setExpects] = useState(false);
  const save = useAction((example: ToolExample) => actions.put(toolRef(tool), example), { invalidates: [keys.toolPart(toolRef(tool), 'examples')], done: () => { notify(t('common.saved')); onDone(); } });
  const submit = () => save.mutate({ name: name.trim(), args, ...(description ? { description } : {}), ...(expects && result !== undefined ? { expect: result } : {}) });
  return (
    <form onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <Stack gap="sm">
        <TextInput label={t('try.exampleName')} required pattern=".*\S.*" value={name} maxLength={64} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
        <TextInput label={t('common.description')} value={description} maxLength={200} onChange={(event) => setDescription(event.currentTarget.value)} />
        <Checkbox label={t('try.expectResult')} description={result === undefined ? t('try.expectFirst') : oneLine(result, 60)} disabled={result === undefined} checked={expects && result !== undefined} onChange={(event) => setExpects(event.currentTarget.checked)} />
        <Group justify="flex-end"><Button type="submit" loading={save.isPending}>{t('common.save')}</Button></Group>
      </Stack>
    </form>
  );
}

export function Examples({ tool, args, result, onChoose }: ExamplesProps) {
  const t = useT();
  const mayEdit = useMay('editor');
  const ref = toolRef(tool);
  const all = useQuery(examplesQuery(ref)).data ?? [];
  const [open, setOpen] = useState(false);
  const invalidates = [keys.toolPart(ref, 'examples')];
  const remove = useAction((example: ToolExample) => actions.remove(ref, example.name), {
    invalidates,
    done: (_, example) => notify(t('try.exampleRemoved', { name: example.name }), { label: t('common.undo'), run: () => restore.mutate(example) }),
  });
  const restore = useAction((example: ToolExample) => actions.put(ref, example), { invalidates });
  const run = useAction(() => actions.run(ref), { invalidates: [keys.calls] });
  const results = new Map((run.data?.results ?? []).map((item) => [item.name, item]));
  const failed = [...results.values()].filter((item) => item.status !== 'passed');
  if (all.length === 0 && !mayEdit) return null;
  return (
    <Stack gap={4}>
      <Group gap={4}>
        {all.length > 0 && <Text size="xs" c="dimmed" mr={4}>{t('try.examples')}</Text>}
        {all.map((example) => {
          const outcome = results.get(example.name);
          return (
            <Button.Group key={example.name}>
              <Tooltip label={example.description ? visibleText(example.description) : oneLine(example.args, 160)}>
                <Button variant="default" size="compact-xs" leftSection={outcome && <StatusBadge status={outcome.status === 'passed' ? 'success' : 'error'} label={t(`try.${outcome.status}`)} iconOnly />} onClick={() => onChoose(example.args as JsonObject)}>{visibleText(example.name)}</Button>
              </Tooltip>
              {mayEdit && <Button variant="default" size="compact-xs" px={4} aria-label={`${t('common.remove')} ${example.name}`} onClick={() => remove.mutate(example)}><IconX size={11} /></Button>}
            </Button.Group>
          );
        })}
        {mayEdit && (
          <Popover opened={open} onChange={setOpen} position="bottom-start" width={320} shadow="md" trapFocus>
            <Popover.Target>
              <Button variant="subtle" size="compact-xs" leftSection={<IconDeviceFloppy size={13} />} onClick={() => setOpen(!open)}>{t('try.saveExample')}</Button>
            </Popover.Target>
            <Popover.Dropdown><SaveForm tool={tool} args={args} result={result} onDone={() => setOpen(false)} /></Popover.Dropdown>
          </Popover>
        )}
        {mayEdit && all.length > 0 && <Button variant="subtle" size="compact-xs" leftSection={<IconTestPipe size={13} />} loading={run.isPending} onClick={() => run.mutate(undefined)}>{t('try.runExamples')}</Button>}
      </Group>
      {run.data && (failed.length === 0 ? <StatusBadge status="success" label={t('try.allPassed', { n: results.size })} />
        : failed.map((item) => <Text key={item.name} size="xs"><StatusBadge status="error" label={item.name} />: {visibleText((item.message ?? t(`try.${item.status}`)).slice(0, 400))}</Text>))}
    </Stack>
  );
}
