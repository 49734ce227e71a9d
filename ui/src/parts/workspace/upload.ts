/** Files from a drop or a dialog, with the paths that they have in dropped folders. */
import { uploadPath } from './tree';

export interface Upload {
  path: string;
  file: File;
}

const MAX_FILES = 2000;

function readEntries(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  return new Promise((resolve, reject) => {
    // A reader returns a part of the entries each time, and none at the end.
    const next = () => reader.readEntries((part) => {
      all.push(...part);
      if (part.length === 0 || all.length > MAX_FILES) resolve(all);
      else next();
    }, reject);
    next();
  });
}

async function walk(entry: FileSystemEntry, prefix: string, found: Upload[]): Promise<void> {
  if (found.length >= MAX_FILES) return;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push({ path: uploadPath(prefix, { name: entry.name }), file });
  } else {
    for (const inner of await readEntries(entry as FileSystemDirectoryEntry)) await walk(inner, uploadPath(prefix, { name: entry.name }), found);
  }
}

/** The entries must be taken while the event is handled; reading them may take longer. */
export function droppedFiles(data: DataTransfer, folder: string): Promise<Upload[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.() ?? null);
  const plain = [...data.files];
  return (async () => {
    const found: Upload[] = [];
    for (const entry of entries) if (entry) await walk(entry, folder, found);
    return found.length > 0 ? found : chosenFiles(plain, folder);
  })();
}

export function chosenFiles(files: readonly File[], folder: string): Upload[] {
  return files.slice(0, MAX_FILES).map((file) => ({ path: uploadPath(folder, file), file }));
}
