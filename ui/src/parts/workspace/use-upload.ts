import { useState } from 'react';
import type { FileList as WorkspaceFiles } from '@/api/types';
import { workspaceKeys, workspaces } from '@/api/workspaces';
import { useT } from '@/i18n';
import { notify, useAction, useAsk } from '../feedback';
import type { Upload } from './upload';

/** Uploads one file after the other; asks before it replaces any. */
export function useUpload(workspace: string, list: WorkspaceFiles | undefined, onDone?: (paths: string[]) => void) {
  const t = useT();
  const ask = useAsk();
  const [done, setDone] = useState<{ count: number; total: number }>();
  const send = useAction(async (uploads: Upload[]) => {
    for (const [index, upload] of uploads.entries()) {
      setDone({ count: index, total: uploads.length });
      await workspaces.put(workspace, upload.path, upload.file);
    }
    return uploads.map((upload) => upload.path);
  }, { invalidates: [workspaceKeys.all], done: (paths) => { notify(t('workspaces.uploaded', { n: paths.length })); onDone?.(paths); } });
  const start = async (uploads: Upload[]) => {
    const known = new Set(list?.files.map((file) => file.path));
    const replaced = uploads.filter((upload) => known.has(upload.path));
    if (uploads.length === 0) return;
    if (replaced.length > 0 && !(await ask({ title: t('workspaces.replaceTitle', { n: replaced.length }), body: replaced.slice(0, 8).map((upload) => upload.path).join(', '), confirm: t('workspaces.replace') }))) return;
    send.mutate(uploads, { onSettled: () => setDone(undefined) });
  };
  return { start, progress: done, isPending: send.isPending };
}
