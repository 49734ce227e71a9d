/** A package before it is installed: what is in it, what it would run, whether it can be trusted. */
import { Alert, Button, Checkbox, FileButton, Group, Modal, Stack, Table, Text, TextInput } from '@mantine/core';
import { IconAlertTriangle, IconLink, IconUpload } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { keys } from '@/api/keys';
import { bundleToolsQuery, type ToolRow } from '@/api/queries';
import { useMay } from '@/api/session';
import { packageProblems, toolsetKeys, toolsets, type ToolsetSource } from '@/api/toolsets';
import type { PackageContent, Problem, ToolsetPreview } from '@/api/types';
import { useT } from '@/i18n';
import { Chip, ErrorPanel, Facts, Mono, PermissionNote, SectionTitle } from '@/parts/basics';
import { notify, useAction } from '@/parts/feedback';
import { bytes, visibleText } from '@/parts/format';
import { Loading } from '@/parts/page';
import { StatusBadge } from '@/parts/status';
import { permissions } from './permissions';
import { RendererChip, SignatureBadge } from './toolset-parts';

function Problems({ title, problems, tone }: { title: string; problems: Problem[]; tone: 'red' | 'yellow' }) {
  if (problems.length === 0) return null;
  return (
    <Alert variant="light" color={tone} title={title} role="alert">
      <Stack gap={4}>{problems.map((problem) => <Text key={problem.field + problem.message} style={{ overflowWrap: 'anywhere' }}>{problem.field && <><Mono>{visibleText(problem.field)}</Mono>: </>}{visibleText(problem.message)}</Text>)}</Stack>
    </Alert>
  );
}

/** Tools that an update takes away. */
const missing = (installed: readonly ToolRow[], content: PackageContent) => installed.map((tool) => tool.name).filter((name) => !content.tools.some((tool) => tool.id === name));

function Preview({ preview: { package: preview, replaces } }: { preview: ToolsetPreview }) {
  const t = useT();
  const asked = permissions(preview);
  const installed = useQuery({ ...bundleToolsQuery(preview.id), enabled: replaces !== null }).data?.tools ?? [];
  return (
    <Stack gap="sm">
      <div>
        <Text fw={600} size="md">{visibleText(preview.name)} <Text span c="dimmed">{preview.version}</Text></Text>
        <Text c="dimmed">{visibleText(preview.description)}</Text>
      </div>
      <Facts rows={[
        ['ID', <Mono key="id">{visibleText(preview.id)}</Mono>],
        [t('toolsets.action'), replaces ? t('toolsets.actionUpdate', { from: replaces.version, to: preview.version }) : t('toolsets.actionInstall')],
        [t('toolsets.signature'), <SignatureBadge key="s" signature={preview.signature} />],
        [t('workspaces.files'), `${t('workspaces.fileCount', { n: preview.files.length })} · ${bytes(preview.total_bytes)}`],
      ]} />
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
              <Table.Tr key={tool.id}>
                <Table.Td style={{ overflowWrap: 'anywhere' }}><Mono>{visibleText(tool.id)}</Mono><Text size="xs" c="dimmed" lineClamp={2}>{visibleText(tool.description)}</Text></Table.Td>
                <Table.Td w={130} ta="right"><Group gap={4} justify="flex-end">{tool.requires_confirmation && <StatusBadge status="approve" iconOnly label={t('tools.confirmation')} />}<RendererChip renderer={tool.renderers[0]} /></Group></Table.Td>
              </Table.Tr>
            ))}
            {missing(installed, preview).map((name) => <Table.Tr key={name}><Table.Td><Text td="line-through" c="dimmed"><Mono>{visibleText(name)}</Mono></Text></Table.Td><Table.Td ta="right"><Chip>{t('workspaces.change.removed')}</Chip></Table.Td></Table.Tr>)}
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
  const mayAdmin = useMay('admin');
  const [isOpen, setOpen] = useState(false);
  const install = useAction((from: ToolsetSource) => toolsets.install(from, isOpen), {
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
  const content = preview?.package;
  const isBlocked = !content || content.signature.status === 'invalid';
  const wantsOut = content?.tools.some((tool) => !tool.permissions.sandbox) === true;
  // A server may be any program, so only admins install packages that have one.
  const needsAdmin = !mayAdmin && (content?.mcp_servers.length ?? 0) > 0;
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
        {wantsOut && mayAdmin && <Checkbox label={t('toolsets.allowUnsandboxed')} description={t('toolsets.allowUnsandboxedHelp')} checked={isOpen} onChange={(event) => setOpen(event.currentTarget.checked)} />}
        {needsAdmin && <PermissionNote needs="admin" />}
        {source && <Group justify="flex-end"><Button variant="default" onClick={() => { setSource(undefined); reset(); install.reset(); }}>{t('common.back')}</Button>{preview && <Button disabled={isBlocked || needsAdmin} loading={install.isPending} onClick={() => install.mutate(source)}>{preview.replaces ? t('toolsets.updateTo', { version: preview.package.version }) : t('toolsets.install')}</Button>}</Group>}
      </Stack>
    </Modal>
  );
}
