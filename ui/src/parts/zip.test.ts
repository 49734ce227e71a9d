import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { crc32, zip } from './zip';

const encode = (text: string) => new TextEncoder().encode(text);

it('computes the checksum of the format', () => expect(crc32(encode('123456789')).toString(16)).toBe('cbf43926'));

it('is read by another program', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'haft-zip-')), 'a.zip');
  const archive = zip([{ path: 'a.txt', bytes: encode('one') }, { path: 'ordner/grüße.txt', bytes: encode('zwei') }, { path: 'empty', bytes: new Uint8Array() }]);
  writeFileSync(file, new Uint8Array(await archive.arrayBuffer()));
  const script = 'import sys, zipfile, json; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(json.dumps({n: z.read(n).decode() for n in z.namelist()}))';
  const read = spawnSync('python3', ['-c', script, file], { encoding: 'utf8' });
  expect(JSON.parse(read.stdout)).toEqual({ 'a.txt': 'one', 'ordner/grüße.txt': 'zwei', empty: '' });
});
