/** A package before it is installed: what is in it, what it would run, whether it can be trusted. */
import { Alert, Button, FileButton, Group, Modal, Stack, Table, Text, TextInput } from '@mantine/core';
import { IconAlertTriangle, IconLink, IconUpload } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { keys } from '@/api/keys';
import { packageProblems, toolsetKeys, toolsets, type ToolsetPreview, type ToolsetSource } from '@/api/unreleased';
import type { Problem } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, ErrorPanel, Facts, Mono, SectionTitle } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { activeRenderer, permissions } from './permissions';
import { RendererChip, SignatureBadge } from './toolset-parts';

function Problems({ title, problems, tone }: { title: string; problems: Problem[]; tone: 'red' | 'yellow' }) {
  if (problems.length === 0) return null;
  return (
    <Alert variant="light" color={tone} title={title} role="alert">
      <Stack gap={4}>{problems.map((problem) => <Text key={problem.field + problem.message} style={{ overflowWrap: 'anywhere' }}>{problem.field && <><Mono>{visibleText(problem.field)}</Mono>: </>}{visibleText(problem.message)}</Text>)}</Stack>
    </Alert>
  );
}

function Preview({ preview }: { preview: ToolsetPreview }) {
  const t = useT();
  const asked = permissions(preview);
  return (
    <Stack gap="sm">
      <div>
        <Text fw={600} size="md">{visibleText(preview.name)} <Text span c="dimmed">{preview.version}</Text></Text>
        <Text c="dimmed">{visibleText(preview.description)}</Text>
      </div>
      <Facts rows={[
        ['ID', <Mono key="id">{visibleText(preview.id)}</Mono>],
        [t('toolsets.action'), preview.action === 'update' ? t('toolsets.actionUpdate', { from: preview.installed_version ?? '', to: preview.version }) : t('toolsets.actionInstall')],
        [t('toolsets.signature'), <SignatureBadge key="s" signature={preview.signature} />],
        [t('workspaces.files'), `${t('workspaces.fileCount', { n: preview.files })} · ${bytes(preview.bytes)}`],
      ]} />
      <Problems title={t('toolsets.errors', { n: preview.errors.length })} problems={preview.errors} tone="red" />
      <Problems title={t('toolsets.warnings', { n: preview.warnings.length })} problems={preview.warnings} tone="yellow" />
      <div>
        <SectionTitle>{t('toolsets.permissions')}</SectionTitle>
        {asked.length === 0 ? <Text c="dimmed">{t('toolsets.noPermissions')}</Text> : (
          <Stack gap="xs">{asked.map((permission) => (
            <Group key={permission.kind + permission.subject} gap="sm" wrap="nowrap" align="flex-start">
              <IconAlertTriangle size={15} color="var(--haft-warn)" aria-hidden style={{ flex: 'none', marginTop: 2 }} />
              <div style={{ minWidth: 0 }}><Text>{t(`toolsets.permission.${permission.kind}`)}</Text><Text c="dimmed" style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(permission.subject)}</Mono></Text></div>
            </Group>
          ))}</Stack>
        )}
      </div>
      <div>
        <SectionTitle>{t('nav.tools')} · {preview.tools.length}</SectionTitle>
        <Table verticalSpacing={5} layout="fixed">
          <Table.Tbody>
            {preview.tools.map((tool) => (
              <Table.Tr key={tool.name}>
                <Table.Td style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(tool.name)}</Mono><Text size="xs" c="dimmed" lineClamp={2}>{visibleText(tool.description)}</Text></Table.Td>
                <Table.Td w={130} ta="right"><Group gap={4} justify="flex-end">{tool.requires_confirmation && <StatusBadge status="approve" iconOnly label={t('tools.confirmation')} />}<RendererChip renderer={activeRenderer(tool.renderers)} /></Group></Table.Td>
              </Table.Tr>
            ))}
            {preview.removed_tools.map((name) => <Table.Tr key={name}><Table.Td><Text td="line-through" c="dimmed"><Mono>{visibleText(name)}</Mono></Text></Table.Td><Table.Td ta="right"><Chip>{t('workspaces.change.removed')}</Chip></Table.Td></Table.Tr>)}
          </Table.Tbody>
        </Table>
      </div>
    </Stack>
  );
}

/** Choose a file or an address, look, install. `file` comes from a drop on the page. */
export function ImportDialog({ file, onClose }: { file: File | undefined; onClose: (installed?: string) => void }) {
  const t = useT();
  const [source, setSource] = useState<ToolsetSource | undefined>(file && { file });
  const [url, setUrl] = useState('');
  const inspect = useMutation({ mutationFn: toolsets.inspect });
  const install = useAction((from: ToolsetSource) => toolsets.install(from), {
    invalidates: [toolsetKeys.all, keys.tools, keys.bundles, keys.servers], failed: () => undefined,
    done: (toolset) => { notify(t('toolsets.installed', { name: toolset.name })); onClose(toolset.id); },
  });
  const { mutate, reset } = inspect;
  const choose = (next: ToolsetSource) => {
    install.reset();
    setSource(next);
    mutate(next);
  };
  useEffect(() => { if (file) mutate({ file }); }, [file, mutate]);
  const preview = inspect.data;
  const error = inspect.error ?? install.error;
  const problems = packageProblems(error);
  const isBlocked = !preview || preview.errors.length > 0 || preview.signature.state === 'invalid';
  return (
    <Modal opened onClose={() => onClose()} size="xl" title={<Text fw={600} size="md">{t('toolsets.import')}</Text>}>
      <Stack>
        {!source && (
          <>
            <Text c="dimmed">{t('toolsets.importHint')}</Text>
            <Group><FileButton accept=".zip,application/zip" onChange={(next) => { if (next) choose({ file: next }); }}>{(props) => <Button leftSection={<IconUpload size={15} />} {...props}>{t('toolsets.chooseZip')}</Button>}</FileButton></Group>
            <form onSubmit={(event) => { event.preventDefault(); choose({ url: url.trim() }); }}>
              <Group align="flex-end" gap="sm"><TextInput flex={1} type="url" required withAsterisk={false} label={t('toolsets.address')} placeholder="https://example.com/my-toolset.zip" value={url} onChange={(event) => setUrl(event.currentTarget.value)} leftSection={<IconLink size={14} />} /><Button type="submit" variant="default">{t('import.preview')}</Button></Group>
            </form>
          </>
        )}
        {inspect.isPending && <Loading rows={5} />}
        {error && (problems.length > 0 ? <Problems title={t('toolsets.errors', { n: problems.length })} problems={problems} tone="red" /> : <ErrorPanel error={error} />)}
        {preview && <Preview preview={preview} />}
        {source && <Group justify="flex-end"><Button variant="default" onClick={() => { setSource(undefined); reset(); install.reset(); }}>{t('common.back')}</Button>{preview && <Button disabled={isBlocked} loading={install.isPending} onClick={() => install.mutate(source)}>{preview.action === 'update' ? t('toolsets.updateTo', { version: preview.version }) : t('toolsets.install')}</Button>}</Group>}
      </Stack>
    </Modal>
  );
}
